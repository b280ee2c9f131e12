package ackguard

import (
	"errors"
	"fmt"
	"net"

	"github.com/hashicorp/raft"

	"tarry/cluster/transport"
)

// maxTermJump is how far above this node's term another node's may be. Each election
// raises the term by one. A node that was down for a year, while the others elected
// a hundred leaders a second, is still within it. Elections cannot have reached a
// higher term, but Raft would adopt it. A single message with the largest number would
// leave the cluster without a term for another election, permanently.
const maxTermJump = 1 << 32

// farBeyond reports whether a term cannot have been reached by elections.
func farBeyond(term, now uint64) bool { return term > now && term-now > maxTermJump }

// checkRPC returns an error for a message that no correct server sends, given this
// node's term, the leader that it knows, and its own id. Raft checks none of this. It
// would store inconsistent entries, panic at a configuration that does not decode,
// count a vote without a candidate, or start an election at anybody's request.
func checkRPC(command any, now uint64, leader, self raft.ServerID) error {
	switch c := command.(type) {
	case *raft.AppendEntriesRequest:
		return errors.Join(checkCaller(c.ID, c.Term, now), checkEntries(c))
	case *raft.RequestVoteRequest:
		return checkCaller(c.ID, c.Term, now)
	case *raft.RequestPreVoteRequest:
		return checkCaller(c.ID, c.Term, now)
	case *raft.InstallSnapshotRequest:
		if c.Size < 0 || c.SnapshotVersion != raft.SnapshotVersionMax || c.LastLogTerm > c.Term {
			return fmt.Errorf("a snapshot of version %d with %d bytes up to term %d in term %d", c.SnapshotVersion, c.Size, c.LastLogTerm, c.Term)
		}
		if c.Term == now && leader != "" && raft.ServerID(c.ID) != leader {
			return fmt.Errorf("server %.64q sends its state, but the leader of term %d is %q", c.ID, now, leader)
		}
		return errors.Join(checkCaller(c.ID, c.Term, now), checkConfiguration(c.Configuration))
	case *raft.TimeoutNowRequest:
		if id := raft.ServerID(c.ID); id != self && (leader == "" || id != leader) {
			return fmt.Errorf("server %.64q transfers leadership, but the leader is %q", id, leader)
		}
		return nil
	}
	return fmt.Errorf("a message of type %T", command)
}

// checkSender returns an error unless a message names the server that has opened its
// connection. The connection may be bound to a certificate; the message is not, and Raft
// counts votes and follows leaders by the id in it.
func checkSender(from net.Addr, command any) error {
	m, ok := command.(raft.WithRPCHeader)
	if !ok {
		return nil // checkRPC refuses it
	}
	var serverID string
	if caller, ok := from.(*transport.CallerAddr); ok {
		serverID = caller.ServerID
	}
	if id := string(m.GetRPCHeader().ID); id != serverID {
		return fmt.Errorf("server %.64q sends it in the name of %.64q", serverID, id)
	}
	return nil
}

// acceptsRPC reports whether a message may reach Raft that came on a connection from an
// address. If not, it replies with an error.
func (g *Guard) acceptsRPC(from net.Addr, rpc raft.RPC) bool {
	var now uint64
	var leader raft.ServerID
	if r := g.raft.Load(); r != nil {
		now = r.CurrentTerm()
		_, leader = r.LeaderWithID()
	}
	err := errors.Join(checkSender(from, rpc.Command), checkRPC(rpc.Command, now, leader, g.self()))
	if err != nil {
		rpc.Respond(nil, fmt.Errorf("refused: %w", err))
		g.cfg.Logger.Warn("refused a message to Raft that no correct server sends", "from", from, "type", fmt.Sprintf("%T", rpc.Command), "error", err)
		return false
	}
	// Raft refuses a state of a leader that was deposed only after it has read all of it, and does
	// nothing else until then.
	if state, ok := rpc.Command.(*raft.InstallSnapshotRequest); ok && state.Term < now {
		rpc.Respond(&raft.InstallSnapshotResponse{Term: now}, nil)
		g.cfg.Logger.Warn("refused the state of a leader of an older term", "from", from, "its_term", state.Term, "term", now)
		return false
	}
	return true
}

func checkCaller(id []byte, term, now uint64) error {
	switch {
	case len(id) == 0:
		return errors.New("it has no sender")
	case term == 0 || farBeyond(term, now):
		return fmt.Errorf("it is of term %d, and this node is in term %d", term, now)
	}
	return nil
}

// checkEntries returns an error unless the entries of an append can be part of a log.
func checkEntries(c *raft.AppendEntriesRequest) error {
	index, term := c.PrevLogEntry, c.PrevLogTerm
	if term > c.Term {
		return fmt.Errorf("its entries follow one of term %d, and it is of term %d", term, c.Term)
	}
	for _, e := range c.Entries {
		if e == nil || e.Index != index+1 || e.Term < term || e.Term > c.Term {
			return fmt.Errorf("its entries do not follow one another after entry %d of term %d", index, term)
		}
		index, term = e.Index, e.Term
		switch e.Type {
		case raft.LogConfiguration:
			if err := checkConfiguration(e.Data); err != nil {
				return err
			}
		case raft.LogCommand, raft.LogNoop, raft.LogBarrier:
		default:
			return fmt.Errorf("entry %d has the type %d", e.Index, e.Type)
		}
	}
	return nil
}

// checkConfiguration returns an error if a configuration cannot be decoded, where
// raft.DecodeConfiguration panics.
func checkConfiguration(data []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the configuration does not decode: %v", p)
		}
	}()
	if len(raft.DecodeConfiguration(data).Servers) == 0 {
		return errors.New("the configuration has no servers")
	}
	return nil
}
