package membership

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/memberpb"
	"tarry/cluster/transport"
)

// Witness wraps Raft's transport, so that this node remembers what others have
// acknowledged to it, exactly: before Raft counts an answer, it is a receipt. What
// is learnt from questions alone lags behind by seconds, in which an old copy of
// a directory could be put in place and catch up unseen.
//
// It also names to the stream layer, which Gate has wrapped, the server that is
// meant: by itself Raft's transport gives it an address alone.
func (m *Membership) Witness(t *raft.NetworkTransport) raft.Transport {
	return &witness{NetworkTransport: t, m: m, made: time.Now(), calls: make(chan raft.RPC), closed: make(chan struct{})}
}

type witness struct {
	*raft.NetworkTransport
	m *Membership

	asked atomic.Int64 // when votes were last asked for, since the transport was made
	made  time.Time

	calls    chan raft.RPC // for Raft's own goroutine
	closed   chan struct{}
	closing  sync.Once
	relaying sync.WaitGroup
}

// freshFor is how long the connections of an election are taken for fresh.
const freshFor = 300 * time.Millisecond

// refresh drops the connections that lie ready when an election begins. They may
// lead to addresses that are gone: each would swallow a request without a word,
// and an election with it.
func (w *witness) refresh() {
	now, last := int64(time.Since(w.made)), w.asked.Load()
	if (last == 0 || now-last > int64(freshFor)) && w.asked.CompareAndSwap(last, now) {
		w.CloseStreams()
	}
}

func (w *witness) RequestPreVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	w.refresh()
	return w.NetworkTransport.RequestPreVote(id, transport.Target(id, target), args, resp)
}

func (w *witness) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	// A new leader begins with what it has of its predecessor's.
	w.m.receipts.inherited(receipt{args.PrevLogTerm, args.PrevLogEntry}, w.m.cfg.ServerID)
	request := w.m.leaderAcks.next()
	err := w.NetworkTransport.AppendEntries(id, transport.Target(id, target), args, resp)
	if err == nil {
		if resp.Success && resp.Term == args.Term {
			w.m.leaderAcks.succeeded(string(id), args.Term, request)
		}
		w.m.receipts.acknowledged(string(id), appended(args, resp))
	}
	return err
}

func (w *witness) InstallSnapshot(id raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	err := w.NetworkTransport.InstallSnapshot(id, transport.Target(id, target), args, resp, data)
	if err == nil {
		has := receipt{term: resp.Term}
		if resp.Success && resp.Term == args.Term {
			has.index = args.LastLogIndex
		}
		w.m.receipts.acknowledged(string(id), has)
	}
	return err
}

func (w *witness) RequestVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	w.refresh()
	err := w.NetworkTransport.RequestVote(id, transport.Target(id, target), args, resp)
	if err == nil {
		w.m.receipts.acknowledged(string(id), receipt{term: resp.Term})
	}
	return err
}

func (w *witness) TimeoutNow(id raft.ServerID, target raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	return w.NetworkTransport.TimeoutNow(id, transport.Target(id, target), args, resp)
}

// appended is what an answer to AppendEntries acknowledges. As long as the
// follower is in this leader's term nobody takes a matching entry from it again,
// whatever the entry's own term.
func appended(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) receipt {
	has := receipt{term: resp.Term}
	if resp.Success && resp.Term == args.Term && len(args.Entries) > 0 {
		has.index = args.Entries[len(args.Entries)-1].Index
	}
	return has
}

func (w *witness) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	inner, err := w.NetworkTransport.AppendEntriesPipeline(id, transport.Target(id, target))
	if err != nil {
		return nil, err
	}
	p := &pipeline{
		AppendPipeline: inner, id: string(id), receipts: &w.m.receipts,
		seen: make(chan raft.AppendFuture), stop: make(chan struct{}),
	}
	p.running.Go(p.run)
	return p, nil
}

// pipeline passes answers on after it has noted them.
type pipeline struct {
	raft.AppendPipeline
	id       string
	receipts *receipts
	seen     chan raft.AppendFuture
	stop     chan struct{}
	once     sync.Once
	running  sync.WaitGroup
}

func (p *pipeline) run() {
	for {
		select {
		case f := <-p.AppendPipeline.Consumer():
			if f.Error() == nil { // it has its answer, so this does not block
				p.receipts.acknowledged(p.id, appended(f.Request(), f.Response()))
			}
			select {
			case p.seen <- f:
			case <-p.stop:
				return
			}
		case <-p.stop:
			return
		}
	}
}

func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.seen }

func (p *pipeline) Close() error {
	p.once.Do(func() { close(p.stop) })
	err := p.AppendPipeline.Close()
	p.running.Wait()
	return err
}

// acknowledged takes in what a server has answered to this node.
func (r *receipts) acknowledged(serverID string, has receipt) {
	r.merge([]*memberpb.Receipt{{ServerId: serverID, Term: has.term, Index: has.index}})
}

// led notes who leads a term, as the leader itself says.
func (r *receipts) led(term uint64, leader string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if term >= r.leaderTerm {
		r.leader, r.leaderTerm = leader, term
	}
}

// inherited takes in an entry of this node's log: whoever led its term had it.
func (r *receipts) inherited(entry receipt, self string) {
	if leader := r.leaderOf(entry.term); leader != "" && leader != self {
		r.acknowledged(leader, entry)
	}
}

// leaderOf is who leads a term; empty when it is not known.
func (r *receipts) leaderOf(term uint64) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if term == 0 || r.leaderTerm != term {
		return ""
	}
	return r.leader
}
