package cluster

import (
	"github.com/hashicorp/raft"

	"tarry/cluster/groupcommit"
)

// boundAppends limits the entries of one message to a follower to
// groupcommit.MaxEntryBytes, or to one entry. Raft limits only their number, and every
// message has the same timeout (transport.RaftTimeout), so many large entries would never
// get through a slow connection.
//
// Raft reads the request's entries after it was sent, and continues after the last one.
func boundAppends(t raft.Transport) raft.Transport {
	return boundedAppends{t.(fullTransport)}
}

// fullTransport has all interfaces that Raft uses of its transport.
type fullTransport interface {
	raft.Transport
	raft.WithPreVote
	raft.WithClose
}

type boundedAppends struct{ fullTransport }

func (t boundedAppends) AppendEntries(id raft.ServerID, target raft.ServerAddress, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	req.Entries = firstEntries(req.Entries)
	return t.fullTransport.AppendEntries(id, target, req, resp)
}

func (t boundedAppends) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	p, err := t.fullTransport.AppendEntriesPipeline(id, target)
	return boundedPipeline{p}, err
}

type boundedPipeline struct{ raft.AppendPipeline }

func (p boundedPipeline) AppendEntries(req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	req.Entries = firstEntries(req.Entries)
	return p.AppendPipeline.AppendEntries(req, resp)
}

// firstEntries returns the first of entries, as many as one message carries.
func firstEntries(entries []*raft.Log) []*raft.Log {
	bytes := 0
	for i, e := range entries {
		if bytes += len(e.Data) + len(e.Extensions); bytes > groupcommit.MaxEntryBytes && i > 0 {
			return entries[:i]
		}
	}
	return entries
}
