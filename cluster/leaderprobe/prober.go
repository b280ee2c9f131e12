package leaderprobe

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/raftconfig"
)

// Config has the settings and callbacks of a Prober.
type Config struct {
	ServerID raft.ServerID // of this node
	// Group is the number of the Raft group. The groups of a lost leader begin with different voters, so
	// that their next leaders are spread.
	Group uint32
	// Heartbeat, Election and Lease are the timeouts that Raft runs with.
	Heartbeat, Election, Lease time.Duration
	// Reload changes settings of the running Raft.
	Reload func(change func(*raft.ReloadableConfig)) error
	Logger *slog.Logger
}

// Raft is the part of *raft.Raft that a follower needs.
type Raft interface {
	LeaderWithID() (raft.ServerAddress, raft.ServerID)
	State() raft.RaftState
	CurrentTerm() uint64
	LastContact() time.Time
	GetConfiguration() raft.ConfigurationFuture // does not block
}

// Transport carries the request by which a node makes itself stand for election:
// raft.Transport.
type Transport interface {
	LocalAddr() raft.ServerAddress
	TimeoutNow(raft.ServerID, raft.ServerAddress, *raft.TimeoutNowRequest, *raft.TimeoutNowResponse) error
}

// Prober detects the loss of the leader of one Raft group.
type Prober struct {
	cfg      Config
	connLost chan struct{} // a connection of another node's Raft ended; holds at most one wake-up
}

// New returns a Prober. Call WatchConnections, then Run.
func New(cfg Config) *Prober { return &Prober{cfg: cfg, connLost: make(chan struct{}, 1)} }

// Run probes while this node follows, until ctx ends.
func (p *Prober) Run(ctx context.Context, r Raft, t Transport) {
	f := &follower{Config: p.cfg, raft: r, transport: t}
	var work sync.WaitGroup
	work.Go(func() { f.watchSilence(ctx) })
	work.Go(func() { f.watchConnections(ctx, p.connLost) })
	work.Wait()
}

// follower has what this node needs to start an election.
type follower struct {
	Config
	raft      Raft
	transport Transport
}

// voters returns the servers with a vote, in the order of the configuration.
func (f *follower) voters() []raft.ServerID {
	configuration := f.raft.GetConfiguration()
	if configuration.Error() != nil {
		return nil
	}
	return raftconfig.Voters(configuration.Configuration())
}

// electionStagger is the delay between two followers, in the order of the
// configuration. Two that stood for election at the same time would each vote for
// themselves. The pre-vote of the first is refused by the others, which still count on
// the leader; the second finds the first one's vote. The delay is longer than the
// difference between their last heartbeats.
const electionStagger = 150 * time.Millisecond

// staggered returns how long this node waits before it stands in place of leader,
// once that is gone, and whether it has a vote at all.
func (f *follower) staggered(leader raft.ServerID) (wait time.Duration, votes bool) {
	heirs := slices.DeleteFunc(f.voters(), func(id raft.ServerID) bool { return id == leader })
	at := slices.Index(heirs, f.ServerID)
	if at < 0 {
		return 0, false
	}
	n := len(heirs)
	return time.Duration((at+n-int(f.Group)%n)%n) * electionStagger, true
}

// standForElection begins an election at this node, with the request that a leader
// sends when it transfers leadership.
func (f *follower) standForElection() error {
	req := &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(f.ServerID)}}
	return f.transport.TimeoutNow(f.ServerID, f.transport.LocalAddr(), req, &raft.TimeoutNowResponse{})
}
