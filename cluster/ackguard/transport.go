package ackguard

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/raftwire"
	"tarry/cluster/transport"
)

// Transport is Raft's transport, wrapped so that this node records every acknowledgement that
// it receives before Raft counts it. Status calls alone would be seconds late; in that time an
// old copy of a directory could be put in place and catch up undetected.
//
// It also passes the id of the target server to the stream layer (transport.Target),
// because Raft passes only an address.
type Transport struct {
	*raftwire.Transport
	g *Guard

	asked atomic.Int64 // time of the last request for votes, since the transport was created
	made  time.Time
}

// Transport returns a transport with c's settings. It sets c.Accept and c.Appended.
func (g *Guard) Transport(c raftwire.Config) *Transport {
	c.Accept = g.acceptsRPC
	c.Appended = func(id raft.ServerID, request *raft.AppendEntriesRequest, reply *raft.AppendEntriesResponse) {
		g.acks.merge(string(id), appended(request, reply))
	}
	return &Transport{Transport: raftwire.New(c), g: g, made: time.Now()}
}

// freshFor is how long the connections of an election count as fresh.
const freshFor = 300 * time.Millisecond

// refresh drops the pooled connections when an election begins. They may be to
// addresses that no longer exist. Each of these would lose a request without an error,
// and so the election.
func (a *Transport) refresh() {
	now, last := int64(time.Since(a.made)), a.asked.Load()
	if (last == 0 || now-last > int64(freshFor)) && a.asked.CompareAndSwap(last, now) {
		a.CloseIdle()
	}
}

func (a *Transport) RequestPreVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	a.refresh()
	return overStale(func() error {
		return a.Transport.RequestPreVote(id, transport.Target(id, target), args, resp)
	})
}

func (a *Transport) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	// A new leader begins with the entries that it has of its predecessor.
	a.g.acks.inherited(position{args.PrevLogTerm, args.PrevLogEntry}, a.g.cfg.ServerID)
	request := a.g.successes.next()
	err := a.Transport.AppendEntries(id, transport.Target(id, target), args, resp)
	if err == nil {
		if resp.Success && resp.Term == args.Term {
			a.g.successes.note(id, args.Term, request)
		}
		a.g.acks.merge(string(id), appended(args, resp))
	}
	return err
}

func (a *Transport) InstallSnapshot(id raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	err := a.Transport.InstallSnapshot(id, transport.Target(id, target), args, resp, data)
	if err == nil {
		has := position{term: resp.Term}
		if resp.Success && resp.Term == args.Term {
			has.index = args.LastLogIndex
		}
		a.g.acks.merge(string(id), has)
	}
	return err
}

func (a *Transport) RequestVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	a.refresh()
	err := overStale(func() error {
		return a.Transport.RequestVote(id, transport.Target(id, target), args, resp)
	})
	if err == nil {
		a.g.acks.merge(string(id), position{term: resp.Term})
	}
	return err
}

func (a *Transport) TimeoutNow(id raft.ServerID, target raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	return overStale(func() error {
		return a.Transport.TimeoutNow(id, transport.Target(id, target), args, resp)
	})
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

func (a *Transport) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	return a.Transport.AppendEntriesPipeline(id, transport.Target(id, target))
}
