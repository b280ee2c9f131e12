package membership

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/memberpb"
	"tarry/cluster/report"
)

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
