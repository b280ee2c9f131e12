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
	"google.golang.org/grpc"

	"tarry/cluster/diskpolicy"
	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/gossipkeys"
	"tarry/invitation"
	"tarry/job"
	"tarry/job/jobpb"
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

	// ClusterID is the cluster's id as the state machine knows it, else empty.
	ClusterID func() string
	// Forgotten reports whether a server id was removed for good.
	Forgotten func(serverID string) bool
	// RemovedNodes is when each node was removed that must not join again, in Unix
	// milliseconds by node id. It does not block, and the result is not changed. nil: none.
	RemovedNodes func() map[string]int64
	// Shown, if not nil, returns an error until this node's state may be shown to clients. It
	// blocks for some seconds at most.
	Shown func(context.Context) error
	// Admission is who may become a member, as the state machine has it. It does not block, and
	// the result is not changed. nil: anybody.
	Admission func() *jobpb.Admission
	// Invitation returns the invitation of this node, which is in no cluster; it may be another
	// one each time. nil: it has none.
	Invitation func() (invitation.Secret, error)
	// InvitationUsed is called on the leader when a node uses an invitation, before that joins.
	// It must not block. nil: not called.
	InvitationUsed func(id, nodeID string)
	// ClusterVersion is the one of the state machine.
	ClusterVersion func() uint32
	// ProposeClusterID, ProposeForget, ProposeAdmit, ProposeUse and ProposeVersion propose to the log.
	// They block until the entry is applied on this node, or ctx ends. ProposeForget also
	// records that a node was removed, unless nodeID is empty.
	ProposeClusterID func(ctx context.Context, id string) error
	ProposeForget    func(ctx context.Context, serverID, nodeID string) error
	ProposeAdmit     func(ctx context.Context, nodeID string) error
	ProposeVersion   func(ctx context.Context, to uint32) error
	// Standby reports whether the cluster is a standby, whose version is that of its primary;
	// nil: it is not.
	Standby func() bool
	// ProposeUse records that a server uses an invitation. The error has CodeNotFound or
	// CodeConditionFailed if it must not.
	ProposeUse func(ctx context.Context, invitation, serverID string) error
	// ProposeClockReset sets the queue's clock back through the log; on the leader.
	ProposeClockReset func(ctx context.Context, to time.Time) error
	// DiskHealth is how this node's disk is doing. It must not block. nil: always well.
	DiskHealth func() diskpolicy.Health
	// Trouble returns why this node's Raft does not take part; empty: it does, as far as it is
	// known. It must not block. nil: always empty.
	Trouble func() string
	// Drained reports whether this node should not lead. It must not block. nil: never.
	Drained func() bool
	// Warnings returns more reasons for Health. It must not block. nil: none.
	Warnings func(now time.Time) []string
	// Backups returns what this node knows of its scheduled backups. It must not block. nil: it
	// has no schedule.
	Backups func() Backups
	// ListBackups returns the scheduled backups in this node's directory, the newest first, how
	// many more there are, and what is wrong with the directory. It must not block. nil: it has
	// no schedule.
	ListBackups func() (files []job.ScheduledBackup, more int, problem string)
	// MaxClockOffset is how far this node's clock may be off the majority's for it
	// to lead; 0: clockguard.DefaultMaxOffset.
	MaxClockOffset time.Duration
	// Now is this node's clock, ClusterClock the queue's clock on the leader.
	// ClockConfirmed receives, on a leader, the earliest time that the majority's clocks
	// may have at an instant of the monotonic clock. None may block. nil: time.Now; Now;
	// not called.
	Now, ClusterClock func() time.Time
	ClockConfirmed    func(at, majority time.Time)
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
	if c.Logger == nil || c.ClusterID == nil || c.Forgotten == nil || c.ProposeClusterID == nil || c.ProposeForget == nil || c.ProposeAdmit == nil || c.ProposeUse == nil || c.ClusterVersion == nil || c.ProposeVersion == nil || c.Acks == nil || c.Dial == nil {
		return errors.New("membership lacks a logger or a callback of the node")
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
