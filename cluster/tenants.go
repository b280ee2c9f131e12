package cluster

import (
	"cmp"
	"time"

	"tarry/auth"
	"tarry/job/jobpb"
)

// Tenants share a node and a leader: what waits to be committed takes turns between them
// (groupcommit), and the rate of a namespace is held here (ratequotas.go), before anything
// enters the log.

// A tenant is the name of a namespace, or one of these.
const (
	// tenantFrom is the tenant of batches from other nodes, in which those nodes' tenants took
	// turns already.
	tenantFrom = "."
	// tenantToken is in front of the id of a token, which may be the name of a namespace.
	tenantToken = ":"
)

// tenantOf returns whose a run of operations is: the namespace of the topic that the first
// one names, or of its job's id, if the caller may do more there than read, so that nobody
// takes turns of another tenant; else the token of the caller. Empty: nobody's, as is all
// while there are no namespaces.
func (s *Shard) tenantOf(ops []*jobpb.Op, principal string) string {
	all := s.machine.Namespaces()
	if all == nil || len(ops) == 0 {
		return ""
	}
	p := auth.DecodePrincipal(cmp.Or(ops[0].Principal, principal))
	if topic := topicOf(ops[0]); topic != "" && s.verbsOn(p, topic)&^auth.Read != 0 {
		return all.Of(topic).GetName()
	}
	if n := all.OfID(refOf(ops[0]).GetId()); n != nil && s.verbsOn(p, n.TopicPrefix)&^auth.Read != 0 {
		return n.Name
	}
	if id := p.TokenID(); id != "" {
		return tenantToken + id
	}
	return ""
}

// verbsOn returns what a principal may do on a topic, as far as this node knows. The state
// machine decides when it applies the operation.
func (s *Shard) verbsOn(p auth.Principal, topic string) auth.Verbs {
	state := s.machine.Auth()
	if state.Mode() != jobpb.AuthMode_AUTH_ENFORCE || p.IsSystem() {
		return ^auth.Verbs(0)
	}
	grants, denial := state.GrantsOf(p, time.Now().UnixMilli())
	if denial != auth.Allowed {
		return 0
	}
	return grants.On(topic)
}

// topicOf returns a topic that an operation names; empty: it names none.
func topicOf(op *jobpb.Op) string {
	switch k := op.Kind.(type) {
	case *jobpb.Op_Add:
		return k.Add.GetTopic()
	case *jobpb.Op_ImportJob:
		return k.ImportJob.GetAdd().GetTopic()
	case *jobpb.Op_AtomicAdd:
		if adds := k.AtomicAdd.GetAdds(); len(adds) > 0 {
			return adds[0].GetTopic()
		}
	case *jobpb.Op_Reserve:
		if topics := k.Reserve.GetTopics(); len(topics) > 0 {
			return topics[0]
		}
	case *jobpb.Op_KickTopic:
		return k.KickTopic.GetTopic()
	case *jobpb.Op_Purge:
		return k.Purge.GetTopic()
	case *jobpb.Op_MoveJobs:
		return k.MoveJobs.GetTopic()
	case *jobpb.Op_ReleaseTopic:
		return k.ReleaseTopic.GetTopic()
	case *jobpb.Op_PauseTopic:
		return k.PauseTopic.GetTopic()
	case *jobpb.Op_SetTopic:
		return k.SetTopic.GetTopic()
	}
	return ""
}

// refOf returns the job that an operation names; nil: it names none.
func refOf(op *jobpb.Op) *jobpb.Ref {
	switch k := op.Kind.(type) {
	case *jobpb.Op_Finish:
		return k.Finish.GetRef()
	case *jobpb.Op_Delete:
		return k.Delete.GetRef()
	case *jobpb.Op_Release:
		return k.Release.GetRef()
	case *jobpb.Op_Touch:
		return k.Touch.GetRef()
	case *jobpb.Op_Bury:
		return k.Bury.GetRef()
	case *jobpb.Op_Kick:
		return k.Kick.GetRef()
	case *jobpb.Op_Update:
		return k.Update.GetRef()
	case *jobpb.Op_ReserveJob:
		return k.ReserveJob.GetRef()
	}
	return nil
}

// topicOfSchedule returns the topic of the jobs of a schedule, as far as this node knows; empty:
// there is no such schedule.
func (s *Shard) topicOfSchedule(name string) string {
	v := s.machine.View()
	defer v.Close() // nothing was written
	info, _, err := v.Schedule(name)
	if err != nil {
		return "" // the state machine decides about the operation, and reports this
	}
	return info.GetSchedule().GetJob().GetTopic()
}
