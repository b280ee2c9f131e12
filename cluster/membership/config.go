package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/raft"
	"google.golang.org/grpc"

	"tarry/cluster/clockguard"
	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/gossipkeys"
	"tarry/internal/invitation"
	"tarry/job"
)

// protocol is the version of the messages between nodes that this release
// speaks. A leader does not add a node of another protocol.
const protocol = 1

// MaxNodeID bounds a node id, which is part of every gossip record.
const MaxNodeID = 64

// MaxExpect and maxSeeds bound what an operator may ask for; a Raft group of
// more voters would only be slower.
const (
	MaxExpect = 9
	maxSeeds  = 64
)

// Config has this node's identity and what membership needs of the node.
type Config struct {
	NodeID      string   // --node-id, 1 to 64 bytes
	ServerID    string   // NodeID "." incarnation, kept in the data directory
	ClusterAddr string   // advertised host:port for Raft and RPC
	HTTPAddr    string   // advertised host:port for clients
	GossipBind  string   // host:port to listen on
	Join        []string // host:gossipport of other nodes, by name
	Expect      int      // --bootstrap-expect; 0: this node only ever joins
	Shards      int      // of the cluster, or of the one that this node is to start or join; 0: one
	Version     string   // release of the binary
	Runs        job.Versions
	NonVoter    bool // this node is not to be made a voter
	HoldVersion bool // the cluster version is not to be raised while this node is a member

	// AdvertiseHost is the name by which others reach this node. It is resolved
	// at the start and again when its address may have changed.
	AdvertiseHost string

	// HasState reports whether Raft has a log, a term or a snapshot on disk.
	HasState bool

	Logger *slog.Logger

	// With several shards: Committed is the configuration of group 0 as far as this node has applied it.
	// CatchUp blocks until that is as far as the leader is.
	Committed func() raft.Configuration
	CatchUp   func(ctx context.Context) error

	Facts     Facts
	Decisions Decisions
	Clocks    clockguard.Clocks
	Condition Condition
	Backups   BackupDir // nil: this node has no schedule

	// Invitation returns the invitation of this node, which is in no cluster; it may be another
	// one each time. nil: it has none.
	Invitation func() (invitation.Secret, error)
	// InvitationUsed is called on the leader when a node uses an invitation, before that joins.
	// It must not block. nil: not called.
	InvitationUsed func(id, nodeID string)
	// MaxClockOffset is how far this node's clock may be off the majority's for it
	// to lead; 0: clockguard.DefaultMaxOffset.
	MaxClockOffset time.Duration
	// Acks are exchanged with every status call.
	Acks Acks
	// Dial gives a pooled connection to a server's RPC port, which reaches no other
	// server at that address; it is not closed here.
	Dial func(ctx context.Context, serverID, clusterAddr string) (*grpc.ClientConn, error)

	// GossipKeys encrypt gossip; nil: it is in plain text. GossipVerify is the step of the
	// move to encrypted gossip.
	GossipKeys   *gossipkeys.Ring
	GossipVerify gossip.Verify
	// SecureCalls reports that all calls between nodes are over TLS, between nodes that have
	// proven their ids. Gossip keys travel only then.
	SecureCalls bool

	Timing Timing // zero values take the defaults

	tuneGossip func(*memberlist.Config) // tests only
}

// Timing is how often things are looked at. Zero values take the defaults.
type Timing struct {
	Poll      time.Duration // how often a node in no cluster looks for one; default 1 s
	Rejoin    time.Duration // how often a member looks for missing ones; default 10 s
	Reconcile time.Duration // how often the leader compares all members; default 15 s
	Health    time.Duration // how often the leader asks every member for its status; default 2 s
	// JoinAnswer is after how long a failed join of an operator is answered, whatever
	// failed.
	JoinAnswer time.Duration // default 9 s
	Stabilize  time.Duration // how long a joiner is healthy before it votes; default 10 s
	Replace    time.Duration // how long a member is gone before an empty node with its id and another address has its place; default 10 min
	MinLead    time.Duration // how long a leader leads before it gives way to a better disk; default 30 s
}

func (t Timing) withDefaults() Timing {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&t.Poll, time.Second)
	set(&t.Rejoin, 10*time.Second)
	set(&t.Reconcile, 15*time.Second)
	set(&t.Health, 2*time.Second)
	set(&t.JoinAnswer, 9*time.Second)
	set(&t.Stabilize, 10*time.Second)
	set(&t.Replace, 10*time.Minute)
	set(&t.MinLead, 30*time.Second)
	return t
}

func (c *Config) check() error {
	if c.NodeID == "" || len(c.NodeID) > MaxNodeID {
		return fmt.Errorf("node id has %d bytes; it takes 1 to %d", len(c.NodeID), MaxNodeID)
	}
	if inc, ok := strings.CutPrefix(c.ServerID, c.NodeID+"."); !ok || inc == "" || strings.Contains(inc, ".") {
		return fmt.Errorf("server id %q is not the node id %q, a dot and an incarnation", c.ServerID, c.NodeID)
	}
	for name, addr := range map[string]string{"cluster": c.ClusterAddr, "HTTP": c.HTTPAddr} {
		if host, _, err := net.SplitHostPort(addr); err != nil || host == "" {
			return fmt.Errorf("advertised %s address %q is not host:port", name, addr)
		}
	}
	for _, a := range c.Join {
		if err := checkSeed(a); err != nil {
			return err
		}
	}
	if c.Expect < 0 || c.Expect > MaxExpect {
		return fmt.Errorf("bootstrap-expect is %d; it must be between 0 and %d", c.Expect, MaxExpect)
	}
	if c.Expect == 1 && len(c.Join) > 0 && !c.HasState {
		return errors.New("bootstrap-expect 1 would start a cluster of one beside the one to join: " +
			"leave out bootstrap-expect to join, or join to start a new cluster")
	}
	if c.Shards > 1 && (c.Committed == nil || c.CatchUp == nil) || c.Logger == nil || c.Facts == nil || c.Decisions == nil || c.Clocks == nil || c.Condition == nil || c.Acks == nil || c.Dial == nil {
		return errors.New("membership lacks a logger or a part of the node")
	}
	return c.meta().Check()
}

// meta is the part of this node's record that never changes.
func (c *Config) meta() gossip.Meta {
	return gossip.Meta{
		NodeID: c.NodeID, ServerID: c.ServerID, ClusterAddr: c.ClusterAddr, HTTPAddr: c.HTTPAddr,
		Version: c.Version, Expect: uint32(c.Expect), Protocol: protocol, NonVoter: c.NonVoter,
	}
}

func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	return host
}
