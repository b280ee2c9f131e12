package ackguard

import (
	"log/slog"
	"strconv"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"tarry/cluster/raftconfig"
)

// Config has the settings of a Guard.
type Config struct {
	ServerID string // this node's
	Group    uint32 // number of the Raft group
	Logger   *slog.Logger
	// OnRollback ends the process: this node has acknowledged more than it has. It
	// may be called more than once, from several goroutines.
	OnRollback func(error)
}

// Guard is for one Raft group on one node. Call New, Check, Transport, then Start with the running Raft.
// It has no goroutines except those of the Transport, which end with its Close. All
// methods may be called from many goroutines at once.
type Guard struct {
	cfg       Config
	raft      atomic.Pointer[raft.Raft]
	acks      acks
	successes successes
}

// New returns a Guard that knows no acknowledgements yet.
func New(cfg Config) *Guard { return &Guard{cfg: cfg} }

// Start takes the running Raft. Until then messages are checked as in term 0.
func (g *Guard) Start(r *raft.Raft) { g.raft.Store(r) }

func (g *Guard) self() raft.ServerID { return raft.ServerID(g.cfg.ServerID) }

func (g *Guard) configured(serverID string) bool {
	c := raftconfig.Latest(g.raft.Load())
	return raftconfig.Contains(c, raft.ServerID(serverID))
}

// LastLogTerm is the term of a running Raft's last entry, in its log or in its state: after
// a snapshot was installed the log is empty. Raft has it only as text, in its stats.
func LastLogTerm(r *raft.Raft) uint64 {
	stats := r.Stats()
	number := func(name string) uint64 {
		n, _ := strconv.ParseUint(stats[name], 10, 64)
		return n
	}
	if number("last_snapshot_index") > number("last_log_index") {
		return number("last_snapshot_term")
	}
	return number("last_log_term")
}
