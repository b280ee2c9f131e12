package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tarry/cluster/leaderrpc"
	"tarry/cluster/noderpc"
	"tarry/cluster/raftconfig"
	"tarry/fsm"
	"tarry/fsm/check"
	"tarry/fsm/view"
	"tarry/internal/sleep"
	"tarry/job"
	"tarry/job/jobpb"
)

// maxMarks bounds the digests that a node computes or keeps at once.
const maxMarks = 4

const (
	// digestTries and digestPause bound the attempts to reach a member. arrival is how long a
	// member may stand still before the mark. After that the time to compute the digest
	// depends on the size of the state.
	digestTries = 20
	digestPause = 250 * time.Millisecond
	arrival     = 30 * time.Second
	// markTries bounds the marks that a verification makes: members may get a whole state
	// meanwhile, in which a mark is not seen.
	markTries = 5
)

// marks holds the state digests of this node at marks in the log.
type marks struct {
	mu      sync.Mutex
	reached uint64 // the last entry whose marks are known
	byName  map[string]*mark
	order   []string
	closed  bool
	running sync.WaitGroup
	arrived chan struct{} // closed when a mark arrives
}

type mark struct {
	done   chan struct{}
	index  uint64
	digest string
	err    error
}

func newMarks() *marks {
	return &marks{byName: map[string]*mark{}, arrived: make(chan struct{})}
}

// digestMark starts computing the digest at a mark that was just applied. It does not
// block, because the view keeps the state of that index.
func (s *Shard) digestMark(p fsm.MarkPoint) {
	m := s.marks
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || len(m.byName) >= maxMarks && !m.dropOldest() {
		p.View.Close()
		return
	}
	k := &mark{done: make(chan struct{}), index: p.Index}
	m.byName[p.Name] = k
	m.order = append(m.order, p.Name)
	close(m.arrived)
	m.arrived = make(chan struct{})
	m.running.Go(func() {
		defer close(k.done)
		defer p.View.Close()
		k.digest, k.err = check.Digest(p.View, nil)
	})
}

// dropOldest deletes the oldest finished mark. It is called with m.mu held.
func (m *marks) dropOldest() bool {
	for i, name := range m.order {
		select {
		case <-m.byName[name].done:
			delete(m.byName, name)
			m.order = append(m.order[:i], m.order[i+1:]...)
			return true
		default:
		}
	}
	return false
}

// reach records that everything up to an entry is applied, and its marks are known.
func (m *marks) reach(index uint64) {
	m.mu.Lock()
	m.reached = index
	m.mu.Unlock()
}

// indexOf returns the index of a mark; 0: it is not known here.
func (m *marks) indexOf(name string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.byName[name]; k != nil {
		return k.index
	}
	return 0
}

// errPassed is the error of a mark of which this node has no digest and will have none.
var errPassed = errors.New("the node has received a state that is newer than the mark")

// wait blocks until the digest at the named mark is computed, which is in the entry at index; 0:
// that is not known. installing reports whether the node gets a whole state.
func (m *marks) wait(ctx context.Context, name string, at uint64, installing func() bool) (uint64, string, error) {
	late := time.NewTimer(arrival)
	defer late.Stop()
	look := time.NewTicker(digestPause)
	defer look.Stop()
	for before := uint64(0); ; {
		m.mu.Lock()
		k, arrived, reached := m.byName[name], m.arrived, m.reached
		m.mu.Unlock()
		switch {
		case k != nil:
			select {
			case <-k.done:
				if errors.Is(k.err, view.ErrEnded) {
					return 0, "", errPassed
				}
				return k.index, k.digest, k.err
			case <-ctx.Done():
				return 0, "", errors.New("the digest was not ready in time")
			}
		case at != 0 && reached >= at:
			return 0, "", errPassed
		case reached != before || installing():
			before = reached
			late.Reset(arrival)
		}
		select {
		case <-arrived:
		case <-look.C:
		case <-late.C:
			return 0, "", errors.New("the node did not reach the mark in time")
		case <-ctx.Done():
			return 0, "", errors.New("the node did not reach the mark in time")
		}
	}
}

func (m *marks) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.running.Wait()
}

// Verify writes a mark into the log and compares the digests that all members
// compute at it. It may be called on any node. It blocks until all have replied
// or ctx ends; a large state takes seconds per million jobs.
func (s *Shard) Verify(ctx context.Context) (job.Verification, error) {
	req := &noderpc.VerifyRequest{Shard: s.cfg.Number}
	resp, err := leaderrpc.Call(ctx, &s.toLeader, leaderrpc.Rules{Read: true}, req, s.verifyAsLeader, noderpc.NodeClient.Verify)
	v := job.Verification{Index: resp.GetIndex(), Equal: resp.GetEqual()}
	for _, d := range resp.GetDigests() {
		v.Digests = append(v.Digests, job.NodeDigest{ID: d.NodeId, Digest: d.Digest, Error: d.Error})
	}
	return v, err
}

func (s *Shard) verifyAsLeader(ctx context.Context, _ *noderpc.VerifyRequest) (*noderpc.VerifyResponse, error) {
	if s.established(ctx) == nil {
		return nil, leaderrpc.ErrNotLeader
	}
	for tries := 1; ; tries++ {
		v, passed, err := s.verifyOnce(ctx)
		if err != nil || !passed || tries == markTries {
			return v, err
		}
	}
}

// verifyOnce makes one mark. passed reports whether a member got a state that is newer than it.
func (s *Shard) verifyOnce(ctx context.Context) (v *noderpc.VerifyResponse, passed bool, err error) {
	name := rand.Text()
	if _, err := s.Do(ctx, []*jobpb.Op{{Kind: &jobpb.Op_Mark{Mark: &jobpb.Mark{Name: name}}}}); err != nil {
		return nil, false, err
	}
	at := s.marks.indexOf(name)
	conf := s.raft.GetConfiguration()
	if err := conf.Error(); err != nil {
		return nil, false, fmt.Errorf("read the configuration: %w", err)
	}
	servers := conf.Configuration().Servers
	v = &noderpc.VerifyResponse{Equal: true, Digests: make([]*noderpc.NodeDigest, len(servers))}
	index := make([]uint64, len(servers))
	var asking sync.WaitGroup
	var newer atomic.Bool
	for i, server := range servers {
		asking.Go(func() {
			d := &noderpc.NodeDigest{NodeId: raftconfig.NodeID(server.ID)}
			v.Digests[i] = d
			var err error
			if index[i], d.Digest, err = s.digestOf(ctx, string(server.ID), string(server.Address), name, at); err != nil {
				if status.Code(err) == codes.Aborted {
					newer.Store(true)
				}
				d.Error = status.Convert(err).Message()
			}
		})
	}
	asking.Wait()
	for i, d := range v.Digests {
		v.Index = max(v.Index, index[i])
		if d.Error != "" || d.Digest != v.Digests[0].Digest {
			v.Equal = false
		}
	}
	return v, newer.Load(), nil
}

// digest serves another node's digestOf.
func (s *Shard) digest(ctx context.Context, req *noderpc.DigestRequest) (*noderpc.DigestResponse, error) {
	index, digest, err := s.awaitDigest(ctx, req.Mark, req.Index)
	if err != nil {
		return nil, err
	}
	return &noderpc.DigestResponse{Index: index, Digest: digest}, nil
}

// awaitDigest returns this node's digest at a mark. Its error is a status: Aborted if another mark
// helps.
func (s *Shard) awaitDigest(ctx context.Context, name string, at uint64) (index uint64, digest string, err error) {
	index, digest, err = s.marks.wait(ctx, name, at, s.adapter.Installing)
	switch {
	case errors.Is(err, errPassed):
		err = status.Error(codes.Aborted, err.Error())
	case err != nil:
		err = status.Errorf(codes.DeadlineExceeded, "digest at mark: %v", err)
	}
	return index, digest, err
}

func (s *Shard) digestOf(ctx context.Context, id, addr, name string, at uint64) (uint64, string, error) {
	if id == s.cfg.ServerID {
		return s.awaitDigest(ctx, name, at)
	}
	client, err := s.cfg.Host.Peer(ctx, id, addr)
	if err != nil {
		return 0, "", err
	}
	// A node that has just restarted can be reached again soon.
	for tries := 0; ; tries++ {
		resp, err := client.Digest(ctx, &noderpc.DigestRequest{Shard: s.cfg.Number, Mark: name, Index: at})
		switch {
		case err == nil:
			return resp.Index, resp.Digest, nil
		case status.Code(err) != codes.Unavailable || tries == digestTries || !sleep.For(ctx, digestPause):
			return 0, "", err
		}
	}
}
