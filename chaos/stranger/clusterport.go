package stranger

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"regexp"
	"slices"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"
)

// ClusterPort returns the attacks on the port for Raft and for calls between nodes.
func ClusterPort() []Attack {
	return []Attack{
		{"cluster-garbage", clusterGarbage},
		{"cluster-silence", clusterSilence},
		{"raft-garbage", raftGarbage},
		{"raft-far-term", raftFarTerm},
		{"raft-disturbance", raftDisturbance},
		{"raft-snapshot", raftSnapshot},
		{"rpc-read", rpcRead},
		{"rpc-propose", rpcPropose},
		{"rpc-membership", rpcMembership},
	}
}

// The beginning of a connection to the cluster port.
const (
	forRaft   byte = 1
	forRPC    byte = 2
	forFrames byte = 3

	wireVersion = 5
	accepted    = 0
)

// foreign is the id of a cluster that does not exist.
const foreign = "ffffffffffffffffffffffffffffffff"

// identity is the cluster that the stranger claims to belong to, and the server that it
// addresses.
type identity struct{ cluster, to string }

// myself is a server id that is in no cluster.
const myself = "stranger.0000000000000000"

// greeting is the header of a connection to shard 0.
func greeting(kind byte, who identity) []byte {
	b := append([]byte("TARRY"), wireVersion, kind, 0, 0, 0, 0)
	for _, id := range []string{who.cluster, who.to, myself} {
		b = append(append(b, byte(len(id))), id...)
	}
	return b
}

// reply is a node's reply to a greeting.
type reply struct {
	status  byte
	cluster string // the node's own, also in a refusal
	reason  string
}

// greet sends a greeting and reads the reply.
func greet(c net.Conn, kind byte, who identity) (reply, error) {
	if err := c.SetDeadline(time.Now().Add(dialLimit)); err != nil {
		return reply{}, err
	}
	if _, err := c.Write(greeting(kind, who)); err != nil {
		return reply{}, err
	}
	var fixed [2]byte
	if _, err := io.ReadFull(c, fixed[:]); err != nil {
		return reply{}, err
	}
	rest := make([]byte, int(fixed[1])+2)
	if _, err := io.ReadFull(c, rest); err != nil {
		return reply{}, err
	}
	reason := make([]byte, binary.BigEndian.Uint16(rest[fixed[1]:]))
	if _, err := io.ReadFull(c, reason); err != nil {
		return reply{}, err
	}
	return reply{fixed[0], string(rest[:fixed[1]]), string(reason)}, c.SetDeadline(time.Time{})
}

// itsName matches the node's own id at the end of its reply to a greeting for another server.
var itsName = regexp.MustCompile(`this is server "([^"]+)"`)

// learning bounds how long the stranger asks, because a node that has just started may not
// know its cluster yet.
const learning = 5 * time.Second

// learn finds out the id of a node and its cluster from its replies.
func (s *Stranger) learn(ctx context.Context) (own identity, err error) {
	ctx, cancel := context.WithTimeout(ctx, learning)
	defer cancel()
	tick := time.NewTicker(learning / 50)
	defer tick.Stop()
	for {
		err := s.ask(ctx, &own)
		if err == nil && own.cluster != "" && own.to != "" {
			return own, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return own, errors.Join(fmt.Errorf("a node does not reveal its identity: %+v", own), err)
		}
	}
}

// ask reads what one reply reveals of the node.
func (s *Stranger) ask(ctx context.Context, own *identity) error {
	c, err := s.dial(ctx, s.Target.Cluster)
	if err != nil {
		return err
	}
	defer c.Close()
	r, err := greet(c, forRPC, identity{cluster: own.cluster, to: "nobody"})
	if err != nil {
		return err
	}
	own.cluster = r.cluster
	if name := itsName.FindStringSubmatch(r.reason); name != nil {
		own.to = name[1]
	}
	return nil
}

func clusterGarbage(ctx context.Context, s *Stranger) error {
	own, err := s.learn(ctx)
	if err != nil {
		return err
	}
	for _, words := range [][]byte{
		s.noise(10), s.noise(100_000), []byte("TARRY"), []byte("GET / HTTP/1.1\r\n\r\n"), []byte("TARRY\xff\x01"),
		greeting(77, identity{}), greeting(forRaft, identity{cluster: foreign})[:9], append(greeting(forRPC, own), s.noise(5000)...),
		append(greeting(forRPC, own), append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), s.noise(5000)...)...),
		append(greeting(forRPC, own), bytes.Repeat([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\x00\x00"), 100)...),
		append(greeting(forFrames, own), s.noise(5000)...),
		// A call without a method, and one of 256 MiB of which nothing follows.
		append(greeting(forFrames, own), callFrame("", nil)...),
		append(append(greeting(forFrames, own), 0x10), callFrame("/tarry.node.v1.Node/Propose", nil)[1:]...),
	} {
		s.tell(ctx, s.Target.Cluster, words, 100*time.Millisecond)
	}
	return nil
}

// clusterSilence sends nothing, or half of a greeting, on many connections.
func clusterSilence(ctx context.Context, s *Stranger) error {
	s.crowd(ctx, s.Target.Cluster, make([][]byte, 400), nil, crowdTime/2)
	s.crowd(ctx, s.Target.Cluster, slices.Repeat([][]byte{greeting(forRaft, identity{})[:8]}, 400), []byte{0}, crowdTime/2)
	return nil
}

// The messages of hashicorp/raft, by their first byte.
const (
	appendEntries byte = iota
	requestVote
	installSnapshot
	timeoutNow
	requestPreVote
)

// raftMessage is a message as Raft's transport sends it.
func raftMessage(kind byte, message any) []byte {
	b := bytes.NewBuffer([]byte{kind})
	if err := codec.NewEncoder(b, &codec.MsgpackHandle{}).Encode(message); err != nil {
		panic(err) // cannot fail in memory
	}
	return b.Bytes()
}

// raft sends messages to the Raft of shard 0, each on a separate connection and with each of
// the identities, and waits a moment for the replies.
func (s *Stranger) raft(ctx context.Context, as []identity, messages ...[]byte) {
	for _, who := range as {
		for _, m := range messages {
			c, err := s.dial(ctx, s.Target.Cluster)
			if err != nil {
				continue
			}
			if r, err := greet(c, forRaft, who); err == nil && r.status == accepted {
				exchange(c, m, 50*time.Millisecond)
			}
			c.Close()
		}
	}
}

// identities returns all that a stranger can claim: no cluster, another cluster, and the
// cluster that the node itself has revealed.
func (s *Stranger) identities(ctx context.Context) ([]identity, error) {
	own, err := s.learn(ctx)
	return []identity{{"", own.to}, {foreign, own.to}, own}, err
}

// outsiders returns the identities that no member has.
func (s *Stranger) outsiders(ctx context.Context) ([]identity, error) {
	ids, err := s.identities(ctx)
	return ids[:2], err
}

func raftGarbage(ctx context.Context, s *Stranger) error {
	ids, err := s.identities(ctx)
	if err != nil {
		return err
	}
	for _, kind := range []byte{appendEntries, requestVote, installSnapshot, timeoutNow, requestPreVote, 99} {
		s.raft(ctx, ids,
			append([]byte{kind}, s.noise(500)...),
			[]byte{kind, 0xdf, 0xff, 0xff, 0xff, 0xff},                                                // a map of 2^32 entries
			[]byte{kind, 0x81, 0xa7, 'E', 'n', 't', 'r', 'i', 'e', 's', 0xdd, 0xff, 0xff, 0xff, 0xff}, // 2^32 entries
			[]byte{kind, 0x81, 0xa2, 'I', 'D', 0xc6, 0xff, 0xff, 0xff, 0xff},                          // an id of 4 GB
			append([]byte{kind}, bytes.Repeat([]byte{0x91}, 200_000)...),                              // nested arrays
		)
	}
	return nil
}

// claim is the header of a message that claims to be of a member.
func claim() raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("stranger"), Addr: []byte("192.0.2.1:7301")}
}

// raftFarTerm sends messages of terms close to the largest.
func raftFarTerm(ctx context.Context, s *Stranger) error {
	ids, err := s.identities(ctx)
	if err != nil {
		return err
	}
	for _, term := range []uint64{math.MaxUint64, math.MaxUint64 - 1, math.MaxInt64, 1 << 40} {
		s.raft(ctx, ids,
			raftMessage(appendEntries, &raft.AppendEntriesRequest{RPCHeader: claim(), Term: term}),
			raftMessage(appendEntries, &raft.AppendEntriesRequest{RPCHeader: claim(), Term: term, PrevLogEntry: 1, PrevLogTerm: 1, LeaderCommitIndex: math.MaxUint64}),
			raftMessage(requestPreVote, &raft.RequestPreVoteRequest{RPCHeader: claim(), Term: term, LastLogIndex: math.MaxUint64, LastLogTerm: term}),
			raftMessage(requestVote, &raft.RequestVoteRequest{RPCHeader: claim(), Term: term, LastLogIndex: math.MaxUint64, LastLogTerm: term, LeadershipTransfer: true}),
			raftMessage(installSnapshot, &raft.InstallSnapshotRequest{RPCHeader: claim(), SnapshotVersion: raft.SnapshotVersionMax, Term: term, LastLogIndex: math.MaxUint64, LastLogTerm: term, Size: 100}),
		)
	}
	return nil
}

// disturbances is how often a follower is asked to start an election: more often than
// elections happen otherwise.
const disturbances = 20

// raftDisturbance asks for elections with identities that no member has.
func raftDisturbance(ctx context.Context, s *Stranger) error {
	ids, err := s.outsiders(ctx)
	if err != nil {
		return err
	}
	for range disturbances {
		s.raft(ctx, ids, raftMessage(timeoutNow, &raft.TimeoutNowRequest{RPCHeader: claim()}))
	}
	return nil
}

// raftSnapshot announces a state that is larger than any disk, and sends an invalid one.
func raftSnapshot(ctx context.Context, s *Stranger) error {
	ids, err := s.identities(ctx)
	if err != nil {
		return err
	}
	request := raft.InstallSnapshotRequest{
		RPCHeader: claim(), SnapshotVersion: raft.SnapshotVersionMax, LastLogIndex: math.MaxUint64, LastLogTerm: 1,
		Configuration: s.noise(100), Size: math.MaxInt64,
	}
	s.raft(ctx, ids[:2], append(raftMessage(installSnapshot, &request), s.noise(1<<20)...))
	request.Term = math.MaxUint64
	s.raft(ctx, ids, append(raftMessage(installSnapshot, &request), s.noise(1<<20)...))
	return nil
}
