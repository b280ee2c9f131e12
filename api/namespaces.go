package api

import (
	"context"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

// putNamespace handles PUT /v1/namespaces/{namespace}.
func (s *server) putNamespace(x *call) error {
	name, err := x.pathValue("namespace")
	if err != nil {
		return err
	}
	var q wire.NamespaceRequest
	if err := x.decode(maxSmallRequest, &q); err != nil {
		return err
	}
	put := new(jobpb.PutNamespace)
	if put.Namespace, err = q.Namespace(name); err != nil {
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
