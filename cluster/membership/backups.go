package membership

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tarry/cluster/membership/gossip"
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

// ScheduledBackups asks all members for their scheduled backups. It needs no leader, because it
// is of use when there is none, and blocks for two seconds at most.
func (m *Membership) ScheduledBackups(ctx context.Context) *report.ScheduledBackups {
	members := m.configured()
	if !slices.ContainsFunc(members, func(n gossip.Member) bool { return n.ServerID == m.cfg.ServerID }) {
		members = append(members, gossip.Member{Meta: gossip.Meta{NodeID: m.cfg.NodeID, ServerID: m.cfg.ServerID}})
	}
	replies := make([]*report.NodeBackups, len(members))
	var wg sync.WaitGroup
	for i, n := range members {
		wg.Go(func() { replies[i] = m.askBackups(ctx, n) })
	}
	wg.Wait()
	for i, n := range members {
		replies[i].Id = n.NodeID
	}
	return mergeBackups(replies)
}

// askBackups asks one member. Its reply has an error if there is none.
func (m *Membership) askBackups(ctx context.Context, n gossip.Member) *report.NodeBackups {
	if n.ServerID == m.cfg.ServerID {
		return m.backupsHere()
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := m.client(ctx, n.ServerID, n.ClusterAddr)
	var resp *report.NodeBackups
	if err == nil {
		resp, err = c.Backups(ctx, &memberpb.BackupsRequest{})
	}
	switch {
	case err == nil:
		return resp
	case status.Code(err) == codes.Unimplemented:
		return &report.NodeBackups{Error: "its release cannot list backups"}
	}
	m.cfg.Logger.Debug("no list of backups", "member", n.NodeID, "error", err)
	return &report.NodeBackups{Error: "it does not reply"}
}

func (s *server) Backups(context.Context, *memberpb.BackupsRequest) (*report.NodeBackups, error) {
	return s.m.backupsHere(), nil
}

func (m *Membership) backupsHere() *report.NodeBackups {
	if m.cfg.Backups == nil {
		return &report.NodeBackups{}
	}
	return m.cfg.Backups.List()
}

// sameBackup is what a backup has in all directories where it is: nodes that share one see the
// same file. Two leaders may make backups of one name; those were taken at different times.
type sameBackup struct {
	name         string
	taken, bytes int64
	problem      bool
}

// mergeBackups makes one list of the replies of nodes.
func mergeBackups(replies []*report.NodeBackups) *report.ScheduledBackups {
	all := &report.ScheduledBackups{Nodes: replies}
	at := make(map[sameBackup]*report.ScheduledBackup)
	for _, r := range replies {
		for _, f := range r.Files {
			key := sameBackup{f.Name, f.TakenMs, f.Bytes, f.Problem != ""}
			if at[key] == nil {
				f.Nodes, at[key] = nil, f
				all.Backups = append(all.Backups, f)
			}
			at[key].Nodes = append(at[key].Nodes, r.Id)
		}
	}
	for _, b := range all.Backups {
		slices.Sort(b.Nodes)
	}
	slices.SortFunc(all.Nodes, func(a, b *report.NodeBackups) int { return strings.Compare(a.Id, b.Id) })
	slices.SortFunc(all.Backups, func(a, b *report.ScheduledBackup) int {
		return cmp.Or(cmp.Compare(b.Index, a.Index), cmp.Compare(b.InstantMs, a.InstantMs), slices.Compare(a.Nodes, b.Nodes))
	})
	return all
}
