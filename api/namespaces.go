package api

import (
	"context"
	"math"
	"net/http"

	"tarry/api/access"
	"tarry/job"
	"tarry/job/jobpb"
)

// quotasRequest has the quotas of a namespace; one that is not given does not bound it.
type quotasRequest struct {
	Jobs   opt[int64]   `json:"jobs"`
	Bytes  opt[int64]   `json:"bytes"`
	Topics opt[int64]   `json:"topics"`
	Rate   opt[float64] `json:"rate"`
}

// namespaceRequest is a whole namespace, except its name.
type namespaceRequest struct {
	TopicPrefix opt[string]        `json:"topic_prefix"`
	IDPrefix    opt[string]        `json:"id_prefix"`
	Description opt[string]        `json:"description"`
	Quotas      opt[quotasRequest] `json:"quotas"`
}

// quotas returns what is asked for; nil: none.
func (q *quotasRequest) quotas() (*jobpb.Quotas, error) {
	made := new(jobpb.Quotas)
	for _, one := range []struct {
		name string
		in   opt[int64]
		to   **uint64
	}{{"quotas.jobs", q.Jobs, &made.Jobs}, {"quotas.bytes", q.Bytes, &made.Bytes}, {"quotas.topics", q.Topics, &made.Topics}} {
		if one.in.v < 0 || one.in.v > maxQuota {
			return nil, job.Invalid(one.name, "is %d; it must be between 0 and %d", one.in.v, int64(maxQuota))
		}
		if one.in.set {
			*one.to = new(uint64(one.in.v))
		}
	}
	if rate := q.Rate; rate.set {
		if !(rate.v >= 0.001 && rate.v <= job.MaxRateMilli/1000) {
			return nil, job.Invalid("quotas.rate", "is %v; it must be between 0.001 and %d adds a second", rate.v, job.MaxRateMilli/1000)
		}
		made.RateMilli = new(uint64(math.Round(rate.v * 1000)))
	}
	if made.SizeVT() == 0 {
		return nil, nil
	}
	return made, nil
}

func (q *namespaceRequest) namespace(name string) (n *jobpb.Namespace, err error) {
	n = &jobpb.Namespace{Name: name, TopicPrefix: q.TopicPrefix.v, IdPrefix: q.IDPrefix.v, Description: q.Description.v}
	n.Quotas, err = q.Quotas.v.quotas()
	return n, err
}

// putNamespace handles PUT /v1/namespaces/{namespace}.
func (s *server) putNamespace(x *call) error {
	name, err := x.pathValue("namespace")
	if err != nil {
		return err
	}
	var q namespaceRequest
	if err := x.decode(maxSmallRequest, &q); err != nil {
		return err
	}
	put := new(jobpb.PutNamespace)
	if put.Namespace, err = q.namespace(name); err != nil {
		return err
	}
	if put.IfRevision, err = x.queryRevision(); err != nil {
		return err
	}
	return s.apply(x, &jobpb.Op{Kind: &jobpb.Op_PutNamespace{PutNamespace: put}}, func(r *jobpb.Result) {
		x.json.boolean("success", true)
		x.json.text("name", name)
		x.json.number("revision", r.GetDetails().GetNamespaceRevision())
		x.json.boolean("existing", r.Existing)
	})
}

// deleteNamespace handles DELETE /v1/namespaces/{namespace}.
func (s *server) deleteNamespace(x *call) error {
	name, err := x.pathValue("namespace")
	if err != nil {
		return err
	}
	revision, err := x.queryRevision()
	if err != nil {
		return err
	}
	op := &jobpb.Op{Kind: &jobpb.Op_DeleteNamespace{DeleteNamespace: &jobpb.DeleteNamespace{Name: name, IfRevision: revision}}}
	return s.apply(x, op, func(*jobpb.Result) {
		x.json.boolean("success", true)
		x.json.text("name", name)
	})
}

func (s *server) getNamespace(x *call) error {
	path := func() (string, error) { return x.pathValue("namespace") }
	n, err := find(x, path, func(ctx context.Context, name string, stale bool) (*jobpb.NamespaceUse, error) {
		a, err := s.Queue.Read(ctx, &jobpb.Read{What: &jobpb.Read_Namespace{Namespace: name}}, stale)
		if err != nil {
			return nil, err
		}
		if len(a.GetNamespaces()) == 0 {
			return nil, job.Errorf(job.CodeNotFound, "there is no namespace with the name %.40q", name)
		}
		return a.Namespaces[0], nil
	})
	if err != nil {
		return err
	}
	x.json.success()
	x.json.namespace(n)
	x.json.endObject()
	return nil
}

// namespaces handles GET /v1/namespaces: all of them, because they are few.
func (s *server) namespaces(x *call) error {
	stale, err := x.stale()
	if err != nil {
		return err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	a, err := s.Queue.Read(ctx, &jobpb.Read{What: &jobpb.Read_Namespaces{Namespaces: new(jobpb.Empty)}}, stale)
	if err != nil {
		return err
	}
	x.json.success()
	objects(&x.json, "namespaces", a.GetNamespaces(), x.json.namespace)
	x.json.endObject()
	return nil
}

// namespace adds the fields of a namespace and what it holds.
func (w *writer) namespace(n *jobpb.NamespaceUse) {
	def := n.Namespace
	w.text("name", def.GetName())
	w.number("revision", def.GetRevision())
	w.text("topic_prefix", def.GetTopicPrefix())
	w.textUnlessEmpty("id_prefix", def.GetIdPrefix())
	w.textUnlessEmpty("description", def.GetDescription())
	w.beginNamedObject("quotas")
	if q := def.GetQuotas(); q != nil {
		for _, one := range []struct {
			name  string
			limit *uint64
		}{{"jobs", q.Jobs}, {"bytes", q.Bytes}, {"topics", q.Topics}} {
			if one.limit != nil {
				w.number(one.name, *one.limit)
			}
		}
		if q.RateMilli != nil {
			w.float("rate", float64(*q.RateMilli)/1000)
		}
	}
	w.endObject()
	w.beginNamedObject("use")
	w.number("jobs", n.Jobs)
	w.number("bytes", n.Bytes)
	w.number("topics", n.Topics)
	w.endObject()
}

// namespaceRoutes are the calls about tenants.
func (s *server) namespaceRoutes() []route {
	return []route{
		{path: "/v1/namespaces", methods: get(access.NeedCaller, s.namespaces, "consistency")},
		{path: "/v1/namespaces/{namespace}", methods: managing(methods{
			http.MethodGet: on(access.NeedCaller, s.getNamespace, "consistency"), http.MethodPut: with(access.NeedNamespaces, s.putNamespace, "if_revision"), http.MethodDelete: on(access.NeedNamespaces, s.deleteNamespace, "if_revision"),
		})},
	}
}
