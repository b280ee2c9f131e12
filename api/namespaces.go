package api

import (
	"context"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

// putNamespace handles PUT /v1/namespaces/{namespace}.
func (s *server) putNamespace(x *call, q *wire.NamespaceRequest) (r wire.NamespacePut, err error) {
	if r.Name, err = x.pathValue("namespace"); err != nil {
		return r, err
	}
	put := new(jobpb.PutNamespace)
	if put.Namespace, err = q.Namespace(r.Name); err != nil {
		return r, err
	}
	if put.IfRevision, err = x.queryRevision(); err != nil {
		return r, err
	}
	done, err := s.doOne(x, &jobpb.Op{Kind: &jobpb.Op_PutNamespace{PutNamespace: put}})
	r.Revision, r.Existing = done.GetDetails().GetNamespaceRevision(), done.GetExisting()
	return r, err
}

// deleteNamespace handles DELETE /v1/namespaces/{namespace}.
func (s *server) deleteNamespace(x *call) (r wire.NamespaceDeleted, err error) {
	if r.Name, err = x.pathValue("namespace"); err != nil {
		return r, err
	}
	revision, err := x.queryRevision()
	if err != nil {
		return r, err
	}
	_, err = s.doOne(x, &jobpb.Op{Kind: &jobpb.Op_DeleteNamespace{DeleteNamespace: &jobpb.DeleteNamespace{Name: r.Name, IfRevision: revision}}})
	return r, err
}

func (s *server) getNamespace(x *call) (r wire.NamespaceReply, err error) {
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
	if err == nil {
		r.Namespace = namespaceShown(n)
	}
	return r, err
}

// namespaces handles GET /v1/namespaces: all of them, because they are few.
func (s *server) namespaces(x *call) (r wire.Namespaces, err error) {
	stale, err := x.stale()
	if err != nil {
		return r, err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	a, err := s.Queue.Read(ctx, &jobpb.Read{What: &jobpb.Read_Namespaces{Namespaces: new(jobpb.Empty)}}, stale)
	r.Namespaces = each(a.GetNamespaces(), namespaceShown)
	return r, err
}

// namespaceShown returns a namespace and what it holds.
func namespaceShown(n *jobpb.NamespaceUse) wire.Namespace {
	def, q := n.Namespace, n.Namespace.GetQuotas()
	shown := wire.Namespace{
		Name: def.GetName(), Revision: def.GetRevision(), TopicPrefix: def.GetTopicPrefix(), IDPrefix: def.GetIdPrefix(), Description: def.GetDescription(),
		Quotas: wire.NamespaceQuotas{Rate: float64(q.GetRateMilli()) / 1000},
		Use:    wire.NamespaceUse{Jobs: n.Jobs, Bytes: n.Bytes, Topics: n.Topics},
	}
	if q != nil {
		shown.Quotas.Jobs, shown.Quotas.Bytes, shown.Quotas.Topics = q.Jobs, q.Bytes, q.Topics
	}
	return shown
}
