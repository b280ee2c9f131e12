package oplog

import (
	"tarry/job"
	"tarry/job/jobpb"
)

// namespaceRules are the rules of the operations on namespaces.
func namespaceRules() []checked {
	put := func(f func(*jobpb.Namespace)) func(*jobpb.Op) {
		return func(op *jobpb.Op) { f(op.GetPutNamespace().Namespace) }
	}
	valid := &jobpb.Namespace{Name: "billing", TopicPrefix: "billing.", IdPrefix: "b-", Quotas: &jobpb.Quotas{RateMilli: new(uint64(1))}}
	return []checked{
		{&jobpb.Op{Kind: &jobpb.Op_PutNamespace{PutNamespace: &jobpb.PutNamespace{Namespace: valid}}}, []rule{
			{func(op *jobpb.Op) { op.GetPutNamespace().Namespace = nil }, "name", "is missing"},
			{put(func(n *jobpb.Namespace) { n.Name = "" }), "name", "has 0 bytes"},
			{put(func(n *jobpb.Namespace) { n.Name = long(33) }), "name", "it takes 1 to 32"},
			{put(func(n *jobpb.Namespace) { n.Name = "a.b" }), "name", "only the characters a-z"},
			{put(func(n *jobpb.Namespace) { n.TopicPrefix = "" }), "topic_prefix", "missing or empty"},
			{put(func(n *jobpb.Namespace) { n.TopicPrefix = "a\n" }), "topic_prefix", "control character"},
			{put(func(n *jobpb.Namespace) { n.TopicPrefix = "a.*" }), "topic_prefix", "without a *"},
			{put(func(n *jobpb.Namespace) { n.IdPrefix = "$0-1" }), "id_prefix", "$"},
			{put(func(n *jobpb.Namespace) { n.Quotas.RateMilli = new(uint64(0)) }), "quotas.rate", "must be above 0"},
			{put(func(n *jobpb.Namespace) { n.Quotas.RateMilli = new(uint64(job.MaxRateMilli + 1)) }), "quotas.rate", "is above 1000000 a second"},
			{put(func(n *jobpb.Namespace) { n.Description = long(job.MaxDescriptionBytes + 1) }), "description", "has 201 bytes"},
			{put(func(n *jobpb.Namespace) { n.Description = "\xff" }), "description", "UTF-8"},
			{put(func(n *jobpb.Namespace) { n.Revision = 1 }), "revision", "state machine"},
		}},
		{&jobpb.Op{Kind: &jobpb.Op_DeleteNamespace{DeleteNamespace: &jobpb.DeleteNamespace{Name: "billing"}}}, []rule{
			{func(op *jobpb.Op) { op.GetDeleteNamespace().Name = "" }, "name", "has 0 bytes"},
		}},
	}
}
