package cluster

import (
	"cmp"
	"time"

	"tarry/auth"
	"tarry/job/jobpb"
	"tarry/job/oplog"
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
	if topic := oplog.TopicOf(ops[0]); topic != "" && s.verbsOn(p, topic)&^auth.Read != 0 {
		return all.Of(topic).GetName()
	}
	if n := all.OfID(oplog.RefOf(ops[0]).GetId()); n != nil && s.verbsOn(p, n.TopicPrefix)&^auth.Read != 0 {
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
