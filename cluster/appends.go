package cluster

import (
	"github.com/hashicorp/raft"

	"tarry/cluster/groupcommit"
)

// boundAppends keeps what one message to a follower carries below groupcommit.MaxEntryBytes, or
// at one entry. Raft bounds their number only, and every message has the same time
// (transport.RaftTimeout), so large entries would never get through a slow line.
//
// Raft looks at what the request holds after it was sent, and goes on behind it.
func boundAppends(t raft.Transport) raft.Transport {
	return boundedAppends{t.(fullTransport)}
}

// fullTransport is all that Raft asks its transport for.
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

// firstEntries is as many of entries as one message carries.
func firstEntries(entries []*raft.Log) []*raft.Log {
	bytes := 0
	for i, e := range entries {
		if bytes += len(e.Data) + len(e.Extensions); bytes > groupcommit.MaxEntryBytes && i > 0 {
			return entries[:i]
		}
	}
	return entries
}
