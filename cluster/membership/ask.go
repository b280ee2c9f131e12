package membership

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/diskpolicy"
	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/memberpb"
	"tarry/cluster/raftconfig"
	"tarry/internal/sleep"
)

// askTimeout bounds one question to one node.
const askTimeout = 2 * time.Second

// client returns a connection to a server's RPC port. It fails if another server has
// the address.
func (m *Membership) client(ctx context.Context, serverID, clusterAddr string) (memberpb.MembershipClient, error) {
	conn, err := m.cfg.Dial(ctx, serverID, clusterAddr)
	if err != nil {
		return nil, fmt.Errorf("reach %s at %s: %w", serverID, clusterAddr, err)
	}
	return memberpb.NewMembershipClient(conn), nil
}

// ask asks one server for its status. A reply from another server at that address is an
// error. A member is asked at its address in Raft's configuration first, because the other one
// may be from gossip, which can be forged.
func (m *Membership) ask(ctx context.Context, serverID, clusterAddr string) (*memberpb.StatusResponse, error) {
	if serverID == m.cfg.ServerID {
		return m.status(serverID), nil // the clock guard reads this node's clock itself
	}
	configured := m.configuredAddr(serverID)
	if configured == "" || configured == clusterAddr {
		return m.askAt(ctx, serverID, clusterAddr, askTimeout)
	}
	resp, err := m.askAt(ctx, serverID, configured, askTimeout/2)
	if err == nil {
		return resp, nil
	}
	resp, other := m.askAt(ctx, serverID, clusterAddr, askTimeout/2)
	if other != nil {
		return nil, errors.Join(err, other)
	}
	return resp, nil
}

func (m *Membership) askAt(ctx context.Context, serverID, clusterAddr string, within time.Duration) (*memberpb.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	c, err := m.client(ctx, serverID, clusterAddr)
	if err != nil {
		return nil, err
	}
	req := &memberpb.StatusRequest{ServerId: m.cfg.ServerID, Acks: m.acksFor(""), Keyring: m.ringState(), About: m.vouching.wanted()}
	m.addClockWarning(raft.ServerID(serverID), req)
	if m.cfg.Shards > 1 {
		req.AddsRefused = m.AddsRefused()
	}
	asked := time.Now()
	resp, err := c.Status(ctx, req)
	if err != nil {
		return nil, err
	}
	if resp.ServerId != serverID {
		return nil, errors.New("server " + resp.ServerId + " answers at the address of " + serverID)
	}
	m.recordRing(serverID, resp.Keyring)
	m.clocks.Record(raft.ServerID(serverID), time.UnixMicro(resp.NowUs), asked, time.Now())
	if m.Configured(serverID) { // as in Status: a stranger's could end this process
		m.replies.record(resp, m.configuration().Servers)
		m.mergeAcks(resp.Acks)
		if resp.AboutConfigured {
			m.vouching.confirm(req.About)
		}
	}
	return resp, nil
}

// askAll asks several servers concurrently; a nil reply means that there was none.
func (m *Membership) askAll(ctx context.Context, nodes []gossip.Member) []*memberpb.StatusResponse {
	out := make([]*memberpb.StatusResponse, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() {
			resp, err := m.ask(ctx, n.ServerID, n.ClusterAddr)
			if err != nil {
				m.cfg.Logger.Debug("no status", "member", n.NodeID, "error", err)
				return
			}
			out[i] = resp
		})
	}
	wg.Wait()
	return out
}

// status is this node's reply to ask.
func (m *Membership) status(asker string) *memberpb.StatusResponse {
	resp := &memberpb.StatusResponse{
		NodeId: m.cfg.NodeID, ServerId: m.cfg.ServerID, ClusterId: m.cfg.Facts.ClusterID(),
		ClusterAddr: m.cfg.ClusterAddr, HttpAddr: m.cfg.HTTPAddr, Release: m.cfg.Version, NonVoter: m.cfg.NonVoter, HasState: m.hasState(), LastContactMs: -1, NowUs: m.clocks.Wall().UnixMicro(),
		MinVersion: m.cfg.Runs.Min, MaxVersion: m.cfg.Runs.Max, ClusterVersion: m.cfg.Facts.Version(), HoldVersion: m.cfg.HoldVersion,
		Drained: m.cfg.Condition.Drained(), Backups: m.backupState(),
	}
	if m.cfg.Shards > 1 {
		resp.Shards = uint32(m.cfg.Shards)
	}
	disk := m.cfg.Condition.Disk()
	resp.DiskLow, resp.DiskFreeBytes, resp.LogWriteUs = disk.Low, disk.Free, disk.LogWrite.Microseconds()
	if asker != "" {
		resp.AskerForgotten, resp.AskerRemovedMs = m.cfg.Facts.Forgotten(asker), m.removedAt(raftconfig.NodeID(asker))
		resp.AskerUninvited = m.uninvited(asker)
	}
	resp.Acks, resp.Keyring = m.acksFor(asker), m.ringState()
	r := m.raft.Load()
	if r == nil {
		return resp
	}
	stats := m.localStats(r)
	resp.LastIndex, resp.LastTerm, resp.LastContactMs = stats.LastIndex, stats.LastTerm, stats.LastContact.Milliseconds()
	resp.AppliedIndex = r.AppliedIndex()
	resp.Trouble = m.cfg.Condition.Trouble()
	resp.AskerConfigured = asker != "" && m.Configured(asker)
	return resp
}

func diskHealthFromPB(s *memberpb.StatusResponse) diskpolicy.Health {
	return diskpolicy.Health{Low: s.DiskLow, Free: s.DiskFreeBytes, LogWrite: micros(s.LogWriteUs)}
}

// replies are what members have last said of themselves when they were asked for their status.
// Clients are sent to these addresses: a record in gossip can be forged.
type replies struct {
	mu sync.Mutex
	of map[string]reply // by server id
}

type reply struct {
	httpAddr, release string
	nonVoter          bool
}

// record keeps the reply of a member. servers are all members.
func (r *replies) record(resp *memberpb.StatusResponse, servers []raft.Server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = make(map[string]reply)
	}
	r.of[resp.ServerId] = reply{resp.HttpAddr, resp.Release, resp.NonVoter}
	if len(r.of) > len(servers) {
		maps.DeleteFunc(r.of, func(id string, _ reply) bool {
			return !slices.ContainsFunc(servers, func(s raft.Server) bool { return string(s.ID) == id })
		})
	}
}

// overrule replaces what gossip has of a server by what it has said itself. The address for clients
// of one that has not replied is empty.
func (m *Membership) overrule(n *gossip.Member) {
	if n.ServerID == m.cfg.ServerID {
		n.HTTPAddr, n.Version, n.NonVoter = m.cfg.HTTPAddr, m.cfg.Version, m.cfg.NonVoter
		return
	}
	m.replies.mu.Lock()
	defer m.replies.mu.Unlock()
	switch said, ok := m.replies.of[n.ServerID]; {
	case !ok:
		n.HTTPAddr = ""
	case said.httpAddr != "": // an earlier release only gossips it
		n.HTTPAddr, n.Version, n.NonVoter = said.httpAddr, said.release, said.nonVoter
	}
}

// followLeader asks each new leader for its status, for its address for clients, until ctx ends.
func (m *Membership) followLeader(ctx context.Context) {
	r := m.raft.Load()
	o := raft.NewObserver(nil, false, func(o *raft.Observation) bool {
		if _, ok := o.Data.(raft.LeaderObservation); ok {
			poke(m.toFollower)
		}
		return false
	})
	r.RegisterObserver(o)
	defer r.DeregisterObserver(o)
	type leading struct {
		serverID string
		term     uint64
	}
	var asked leading
	for {
		now := leading{term: r.CurrentTerm()}
		l, known := m.Leader()
		now.serverID = l.ServerID
		if known && now != asked && now.serverID != m.cfg.ServerID && m.Configured(now.serverID) {
			if _, err := m.ask(ctx, l.ServerID, l.ClusterAddr); err == nil {
				asked = now
			}
		}
		if !sleep.Until(ctx, m.cfg.Timing.Poll, m.toFollower) {
			return
		}
	}
}
