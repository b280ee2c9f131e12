package membership

import (
	"sync"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/memberpb"
	"tarry/cluster/raftconfig"
	"tarry/cluster/report"
)

// Backups is what a node knows of its scheduled backups.
type Backups struct {
	Instant int64  // of the schedule, that of its newest complete one, in Unix milliseconds; 0: none is known
	Trouble string // why it cannot make any
}

// memberBackups holds what each server last reported of its backups.
type memberBackups struct {
	mu sync.Mutex
	of map[raft.ServerID]*memberpb.BackupState // nil: it has no schedule
}

func (b *memberBackups) record(id raft.ServerID, state *memberpb.BackupState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = make(map[raft.ServerID]*memberpb.BackupState)
	}
	b.of[id] = state
}

// reports returns the reports of those servers that made one.
func (b *memberBackups) reports(servers []raft.Server) map[raft.ServerID]*memberpb.BackupState {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := make(map[raft.ServerID]*memberpb.BackupState, len(servers))
	for _, s := range servers {
		if state, known := b.of[s.ID]; known {
			found[s.ID] = state
		}
	}
	return found
}

// backupProblems returns what is wrong with the scheduled backups of members.
func backupProblems(reports map[raft.ServerID]*memberpb.BackupState) (list []*report.Problem) {
	scheduled := false
	for _, state := range reports {
		scheduled = scheduled || state != nil
	}
	for id, state := range reports {
		switch node := raftconfig.NodeID(id); {
		case state.GetTrouble() != "":
			list = append(list, report.NewProblem(report.BackupFails, node, "%s", state.Trouble))
		case state == nil && scheduled:
			list = append(list, report.NewProblem(report.BackupUnscheduled, node, "%s has no --backup-schedule, and other nodes have one: while it leads, no backups are made", node))
		}
	}
	return list
}

func (m *Membership) backupState() *memberpb.BackupState {
	if m.cfg.Backups == nil {
		return nil
	}
	b := m.cfg.Backups.State()
	return &memberpb.BackupState{InstantMs: b.Instant, Trouble: b.Trouble}
}

// memberBackups returns the last reports of all members. This node's own is always current.
func (m *Membership) memberBackups(l *leadership) map[raft.ServerID]*memberpb.BackupState {
	reports := l.backups.reports(m.configuration().Servers)
	reports[m.self()] = m.backupState()
	return reports
}

// OtherBackups returns, on a leader, the instants of the newest scheduled backups that other
// members have, and whether all members that are alive have reported since it leads. It does
// not block.
func (m *Membership) OtherBackups() (instants []int64, all bool) {
	l := m.leadership.Load()
	if l == nil {
		return nil, false
	}
	reports := m.memberBackups(l)
	for id, state := range reports {
		if id != m.self() && state.GetInstantMs() != 0 {
			instants = append(instants, state.InstantMs)
		}
	}
	all = true
	for _, n := range m.members() {
		_, reported := reports[raft.ServerID(n.ServerID)]
		all = all && (reported || !m.Configured(n.ServerID))
	}
	return instants, all
}
