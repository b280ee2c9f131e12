package membership

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/memberpb"
	"tarry/job"
)

// ScheduledBackups asks all members for their scheduled backups. It needs no leader, because it
// is of use when there is none, and blocks for two seconds at most.
func (m *Membership) ScheduledBackups(ctx context.Context) job.ScheduledBackups {
	members := m.configured()
	if !slices.ContainsFunc(members, func(n gossip.Member) bool { return n.ServerID == m.cfg.ServerID }) {
		members = append(members, gossip.Member{Meta: gossip.Meta{NodeID: m.cfg.NodeID, ServerID: m.cfg.ServerID}})
	}
	replies := make([]*memberpb.BackupsResponse, len(members))
	var wg sync.WaitGroup
	for i, n := range members {
		wg.Go(func() { replies[i] = m.askBackups(ctx, n) })
	}
	wg.Wait()
	ids := make([]string, len(members))
	for i, n := range members {
		ids[i] = n.NodeID
	}
	return mergeBackups(ids, replies)
}

// askBackups asks one member. Its reply has an error if there is none.
func (m *Membership) askBackups(ctx context.Context, n gossip.Member) *memberpb.BackupsResponse {
	if n.ServerID == m.cfg.ServerID {
		return m.backupsHere()
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := m.client(ctx, n.ServerID, n.ClusterAddr)
	var resp *memberpb.BackupsResponse
	if err == nil {
		resp, err = c.Backups(ctx, &memberpb.BackupsRequest{})
	}
	switch {
	case err == nil:
		return resp
	case status.Code(err) == codes.Unimplemented:
		return &memberpb.BackupsResponse{Error: "its release cannot list backups"}
	}
	m.cfg.Logger.Debug("no list of backups", "member", n.NodeID, "error", err)
	return &memberpb.BackupsResponse{Error: "it does not reply"}
}

func (s *server) Backups(context.Context, *memberpb.BackupsRequest) (*memberpb.BackupsResponse, error) {
	return s.m.backupsHere(), nil
}

func (m *Membership) backupsHere() *memberpb.BackupsResponse {
	if m.cfg.Backups == nil {
		return &memberpb.BackupsResponse{}
	}
	files, more, problem := m.cfg.Backups.List()
	resp := &memberpb.BackupsResponse{Scheduled: true, More: uint64(more), Error: problem}
	for _, f := range files {
		b := &memberpb.BackupFile{Name: f.Name, Index: f.Index, InstantMs: f.Instant.UnixMilli(), Bytes: f.Bytes, Base: f.Base, Problem: f.Problem}
		if !f.Taken.IsZero() {
			b.TakenMs = f.Taken.UnixMilli()
		}
		resp.Files = append(resp.Files, b)
	}
	return resp
}

// sameBackup is what a backup has in all directories where it is: nodes that share one see the
// same file. Two leaders may make backups of one name; those were taken at different times.
type sameBackup struct {
	name         string
	taken, bytes int64
	problem      bool
}

// mergeBackups makes one list of the replies of nodes.
func mergeBackups(ids []string, replies []*memberpb.BackupsResponse) (all job.ScheduledBackups) {
	at := make(map[sameBackup]int)
	for i, r := range replies {
		all.Nodes = append(all.Nodes, job.NodeBackups{ID: ids[i], Scheduled: r.Scheduled, More: r.More, Error: r.Error})
		for _, f := range r.Files {
			key := sameBackup{f.Name, f.TakenMs, f.Bytes, f.Problem != ""}
			n, found := at[key]
			if !found {
				n = len(all.Backups)
				at[key] = n
				all.Backups = append(all.Backups, backupFromPB(f))
			}
			all.Backups[n].Nodes = append(all.Backups[n].Nodes, ids[i])
		}
	}
	for _, b := range all.Backups {
		slices.Sort(b.Nodes)
	}
	slices.SortFunc(all.Nodes, func(a, b job.NodeBackups) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(all.Backups, func(a, b job.ScheduledBackup) int {
		return cmp.Or(cmp.Compare(b.Index, a.Index), b.Instant.Compare(a.Instant), slices.Compare(a.Nodes, b.Nodes))
	})
	return all
}

func backupFromPB(f *memberpb.BackupFile) job.ScheduledBackup {
	b := job.ScheduledBackup{Name: f.Name, Index: f.Index, Instant: time.UnixMilli(f.InstantMs), Bytes: f.Bytes, Base: f.Base, Problem: f.Problem}
	if f.TakenMs != 0 {
		b.Taken = time.UnixMilli(f.TakenMs)
	}
	return b
}
