package membership

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/diskpolicy"
	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/memberpb"
	"tarry/cluster/raftconfig"
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
