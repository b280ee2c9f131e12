package ackguard

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/transport"
)

// Transport wraps Raft's transport, so that this node records every acknowledgement
// that it receives before Raft counts it. Status calls alone would be seconds late; in
// that time an old copy of a directory could be put in place and catch up undetected.
//
// It also passes the id of the target server to the stream layer (transport.Target),
// because Raft's transport passes only an address. The wrapper's goroutines end
// with its Close.
func (g *Guard) Transport(t *raft.NetworkTransport) raft.Transport {
	return &ackRecorder{NetworkTransport: t, g: g, made: time.Now(), calls: make(chan raft.RPC), closed: make(chan struct{})}
}

type ackRecorder struct {
	*raft.NetworkTransport
	g *Guard

	asked atomic.Int64 // time of the last request for votes, since the transport was created
	made  time.Time

	calls    chan raft.RPC // for Raft's own goroutine
	closed   chan struct{}
	closing  sync.Once
	relaying sync.WaitGroup
}

// freshFor is how long the connections of an election count as fresh.
const freshFor = 300 * time.Millisecond

// refresh drops the pooled connections when an election begins. They may be to
// addresses that no longer exist. Each of these would lose a request without an error,
// and so the election.
func (a *ackRecorder) refresh() {
	now, last := int64(time.Since(a.made)), a.asked.Load()
	if (last == 0 || now-last > int64(freshFor)) && a.asked.CompareAndSwap(last, now) {
		a.CloseStreams()
	}
}

func (a *ackRecorder) RequestPreVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	a.refresh()
	return a.NetworkTransport.RequestPreVote(id, transport.Target(id, target), args, resp)
}

func (a *ackRecorder) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	// A new leader begins with the entries that it has of its predecessor.
	a.g.acks.inherited(position{args.PrevLogTerm, args.PrevLogEntry}, a.g.cfg.ServerID)
	request := a.g.successes.next()
	err := a.NetworkTransport.AppendEntries(id, transport.Target(id, target), args, resp)
	if err == nil {
		if resp.Success && resp.Term == args.Term {
			a.g.successes.note(id, args.Term, request)
		}
		a.g.acks.merge(string(id), appended(args, resp))
	}
	return err
}

func (a *ackRecorder) InstallSnapshot(id raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	err := a.NetworkTransport.InstallSnapshot(id, transport.Target(id, target), args, resp, data)
	if err == nil {
		has := position{term: resp.Term}
		if resp.Success && resp.Term == args.Term {
			has.index = args.LastLogIndex
		}
		a.g.acks.merge(string(id), has)
	}
	return err
}

func (a *ackRecorder) RequestVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	a.refresh()
	err := a.NetworkTransport.RequestVote(id, transport.Target(id, target), args, resp)
	if err == nil {
		a.g.acks.merge(string(id), position{term: resp.Term})
	}
	return err
}

func (a *ackRecorder) TimeoutNow(id raft.ServerID, target raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	return a.NetworkTransport.TimeoutNow(id, transport.Target(id, target), args, resp)
}

// appended returns what a reply to AppendEntries acknowledges. While the follower is in
// this leader's term none of its matching entries is truncated, whatever their own terms.
func appended(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) position {
	has := position{term: resp.Term}
	if resp.Success && resp.Term == args.Term && len(args.Entries) > 0 {
		has.index = args.Entries[len(args.Entries)-1].Index
	}
	return has
}

func (a *ackRecorder) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	inner, err := a.NetworkTransport.AppendEntriesPipeline(id, transport.Target(id, target))
	if err != nil {
		return nil, err
	}
	p := &pipeline{
		AppendPipeline: inner, id: string(id), acks: &a.g.acks,
		seen: make(chan raft.AppendFuture), stop: make(chan struct{}),
	}
	p.running.Go(p.run)
	return p, nil
}

// pipeline passes replies on after it has recorded them.
type pipeline struct {
	raft.AppendPipeline
	id      string
	acks    *acks
	seen    chan raft.AppendFuture
	stop    chan struct{}
	once    sync.Once
	running sync.WaitGroup
}

func (p *pipeline) run() {
	for {
		select {
		case f := <-p.AppendPipeline.Consumer():
			if f.Error() == nil { // the reply has arrived, so this does not block
				p.acks.merge(p.id, appended(f.Request(), f.Response()))
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
