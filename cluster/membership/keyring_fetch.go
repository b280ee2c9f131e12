package membership

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/protobuf/proto"

	"tarry/cluster/membership/gossipkeys"
	"tarry/cluster/membership/memberpb"
	"tarry/cluster/raftconfig"
	"tarry/cluster/report"
)

// recordRing notices a member with newer keys, which this node then fetches. Every status
// call shows both sides what the other has. It is cheap and does not block.
func (m *Membership) recordRing(serverID string, ring *report.RingState) {
	if !m.keysTravel() || !gossipkeys.Newer(versionOf(ring), m.cfg.GossipKeys.Keys().Version()) || !m.Configured(serverID) {
		return
	}
	m.newerKeys.Store(&serverID)
	poke(m.toWatcher)
}

// lookForKeys asks the members when this node misses some of them in gossip, because its
// keys may be the reason: they may have changed while it was away.
func (m *Membership) lookForKeys(ctx context.Context) {
	if !m.keysTravel() || !m.missesMembers() {
		return
	}
	m.askAll(ctx, m.configured()) // and recordRing sees what they say
}

// fetchKeys fetches the keys of a member that has newer ones, if one is known.
func (m *Membership) fetchKeys(ctx context.Context) {
	if !m.keysTravel() || !m.fetches.due(time.Now()) {
		return
	}
	from := m.newerKeys.Swap(nil)
	if from == nil {
		return
	}
	err := m.fetchKeysOf(ctx, raft.ServerID(*from))
	if ctx.Err() != nil || errors.Is(err, gossipkeys.ErrNotNewer) { // others came meanwhile
		return
	}
	if m.fetches.ended(m.cfg.GossipKeys.Keys().Revision, err, time.Now()) {
		m.cfg.Logger.Warn("cannot fetch the newer gossip keys of a member; trying again", "member", raftconfig.NodeID(raft.ServerID(*from)), "error", err)
	}
}

// fetchPause is the pause after the first failed fetch; it doubles up to maxFetchPause.
const (
	fetchPause    = time.Second
	maxFetchPause = 4 * time.Minute
)

// fetches spaces the fetches of keys that fail, for instance because the file of this node
// cannot be written: members show their newer ring every second. It is the watcher's.
type fetches struct {
	pause  time.Duration // 0: the last fetch did not fail
	next   time.Time
	logged string
}

func (f *fetches) due(now time.Time) bool { return f.pause == 0 || !now.Before(f.next) }

// ended records a fetch by a node whose ring has this revision, and reports whether its error
// is to be logged: once for each revision.
func (f *fetches) ended(revision uint64, err error, now time.Time) bool {
	if err == nil {
		*f = fetches{}
		return false
	}
	f.pause = min(max(2*f.pause, fetchPause), maxFetchPause)
	f.next = now.Add(f.pause)
	before := f.logged
	f.logged = fmt.Sprint(revision, " ", err)
	return f.logged != before
}

func (m *Membership) fetchKeysOf(ctx context.Context, id raft.ServerID) error {
	addr, err := m.ServerAddr(id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, adoptTimeout)
	defer cancel()
	c, err := m.client(ctx, string(id), string(addr))
	if err != nil {
		return err
	}
	resp, err := c.FetchKeys(ctx, &memberpb.FetchKeysRequest{})
	if err != nil {
		return err
	}
	ring, err := keysFromPB(resp)
	if err != nil {
		return err
	}
	return m.adopt(ring, raftconfig.NodeID(id))
}

// memberRings has the gossip keys of each member, as the leader last learned them.
type memberRings struct {
	mu sync.Mutex
	of map[raft.ServerID]*report.RingState
}

func (p *memberRings) record(id raft.ServerID, ring *report.RingState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = make(map[raft.ServerID]*report.RingState)
	}
	delete(p.of, id)
	if len(ring.GetFingerprints()) > 0 {
		p.of[id] = ring
	}
}

// problems tells which members have other keys than this leader.
func (p *memberRings) problems(servers []raft.Server, ours *report.RingState) (list []*report.Problem) {
	if len(ours.GetFingerprints()) == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range servers {
		theirs := p.of[s.ID]
		switch node := raftconfig.NodeID(s.ID); {
		case theirs == nil || proto.Equal(theirs, ours):
		case theirs.Fingerprints[0] != ours.Fingerprints[0]:
			list = append(list, report.NewProblem(report.GossipKeys, node, "%s encrypts gossip with key %.16s, and the leader with %s", node, theirs.Fingerprints[0], ours.Fingerprints[0]))
		default:
			list = append(list, report.NewProblem(report.GossipKeys, node, "%s has other gossip keys than the leader: revision %d with %d keys, and the leader revision %d with %d", node, theirs.Revision, len(theirs.Fingerprints), ours.Revision, len(ours.Fingerprints)))
		}
	}
	return list
}
