package report

import (
	"fmt"
	"slices"
	"strings"
)

// The severities of a problem: Critical means that clients are affected now, Warning that they
// will be, or that a node needs a look. Alerts use the same words. None is that of a cluster
// without problems.
const (
	None     = "none"
	Warning  = "warning"
	Critical = "critical"
)

// Kind is what a problem is about. Its text is part of the API.
type Kind string

const (
	NoLeader   Kind = "no_leader"
	NoMajority Kind = "no_majority" // fewer voters than a majority are alive
	NewLeader  Kind = "new_leader"  // it has not asked the members yet
	TwoVoters  Kind = "two_voters"

	ShardLeaderless Kind = "shard_leaderless"
	ShardMembers    Kind = "shard_members" // they are not those of the cluster yet

	NodeDown      Kind = "node_down"
	NodeSilent    Kind = "node_silent"    // it does not reply, or hears nothing from the leader
	NodeStalled   Kind = "node_stalled"   // it does not take part in Raft
	NodeBehind    Kind = "node_behind"    // in the log
	NodeUnchecked Kind = "node_unchecked" // the leader cannot judge it yet
	NodeNotVoting Kind = "node_not_voting"
	NodeVotes     Kind = "node_votes" // though it was started with --non-voter
	NodeDrained   Kind = "node_drained"
	NodeEmpty     Kind = "node_empty"   // it runs without the data that it had
	NodeOutside   Kind = "node_outside" // it is in no cluster, or cannot be taken in
	NodeRemoved   Kind = "node_removed" // it still runs, or is not removed completely
	DuplicateNode Kind = "duplicate_node"
	OtherCluster  Kind = "other_cluster" // this node has found another one

	AddsRefused     Kind = "adds_refused"
	DiskLow         Kind = "disk_low"
	DiskSlow        Kind = "disk_slow"
	ClockOff        Kind = "clock_off"
	ClocksDisagree  Kind = "clocks_disagree"
	QueueClockAhead Kind = "queue_clock_ahead"

	GossipKeys        Kind = "gossip_keys"      // they differ
	CertificateEnds   Kind = "certificate_ends" // within a week
	CertificateEnded  Kind = "certificate_ended"
	PushSecrets       Kind = "push_secrets" // the leader cannot open them
	LimitNear         Kind = "limit_near"
	BackupFails       Kind = "backup_fails"
	BackupUnscheduled Kind = "backup_unscheduled" // one node has no schedule, and others do
	StandbyReseed     Kind = "standby_reseed"     // it must be made again
	StandbyStopped    Kind = "standby_stopped"
	StandbyBehind     Kind = "standby_behind"

	// Other is the kind of a problem that a leader of an earlier release reports.
	Other Kind = "other"
)

// severity returns how bad a problem of the kind is, and whether a cluster with it is not healthy:
// something does not work, or less may fail than should. Otherwise all works, and an operator has
// something to do in time; who waits for a healthy cluster does not wait for that.
func (k Kind) severity() (severity string, unhealthy bool) {
	switch k {
	case NoLeader, ShardLeaderless, AddsRefused:
		return Critical, true
	case TwoVoters, NodeVotes, CertificateEnds, LimitNear, BackupUnscheduled:
		return Warning, false
	}
	return Warning, true
}

// NewProblem returns a problem. node is the id of the node that it is about; empty: it is about no
// single one.
func NewProblem(k Kind, node, format string, args ...any) *Problem {
	severity, unhealthy := k.severity()
	return &Problem{Kind: string(k), Severity: severity, Text: fmt.Sprintf(format, args...), Node: node, Unhealthy: unhealthy}
}

// Texts joins the texts of problems.
func Texts(problems []*Problem) string {
	texts := make([]string, len(problems))
	for i, p := range problems {
		texts[i] = p.Text
	}
	return strings.Join(texts, "; ")
}

// Conclude sets what follows from the problems.
func (h *Health) Conclude() {
	for _, p := range h.Problems {
		h.Reasons = append(h.Reasons, p.Text)
	}
	h.Healthy = !slices.ContainsFunc(h.Problems, (*Problem).GetUnhealthy)
}

// Complete gives a reply of a leader of an earlier release, which has only reasons, its problems.
func (h *Health) Complete() {
	if len(h.GetProblems()) == 0 {
		for _, why := range h.GetReasons() {
			h.Problems = append(h.Problems, NewProblem(Other, "", "%s", why))
		}
	}
}

// Severity returns the highest severity of the problems.
func (h *Health) Severity() string {
	worst := None
	for _, p := range h.GetProblems() {
		if p.Severity == Critical {
			return Critical
		}
		worst = Warning
	}
	return worst
}
