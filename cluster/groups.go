package cluster

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"tarry/cluster/ackguard"
	"tarry/cluster/datadir"
	"tarry/cluster/membership"
	"tarry/cluster/raftwire"
	"tarry/cluster/transport"
)

// A node is in one Raft group or in several. Group 0 is the config group: it has the cluster's id,
// version and members. In a cluster with one shard it has the jobs too. In a cluster with several it
// has none, and the groups from 1 on are the data groups: group g has the shard g-1. Each node has a
// replica of each group. A group has what Raft needs of its own: the log and the state on disk, the
// acknowledgements of its members, the clock of its state. All else is the node's.

// group is one Raft group on this node.
type group struct {
	number   uint32
	shard    *Shard
	hasState bool // Raft has run in its directory before
	acks     *ackguard.Guard
	trans    *ackguard.Transport // nil until Raft starts
	loop     *loopWatch
	member   *membership.Group // of a data group; nil: group 0
}

// shards returns how many shards the cluster has.
func (n *Node) shards() int { return max(1, len(n.groups)-1) }

// dataGroups returns the groups of a cluster with several shards that have jobs.
func (n *Node) dataGroups() []*group { return n.groups[1:] }

// openGroups opens the stores of all groups. Those of the data groups come first: see
// datadir.Dir.Shards.
func (n *Node) openGroups() error {
	shards, err := n.data.Shards(n.cfg.Shards)
	if err != nil {
		return err
	}
	n.groups = []*group{&n.group}
	budget := n.budget(shards)
	if shards == 1 {
		return n.openGroup(&n.group, budget)
	}
	if err := n.checkSharded(); err != nil {
		return err
	}
	for number := 1; number <= shards; number++ {
		g := &group{number: uint32(number)}
		n.groups = append(n.groups, g)
		if dir := n.data.Shard(g.number); n.data.HasGroups() {
			if err := datadir.CheckShard(dir, n.data.ServerID()); err != nil {
				return datadir.WithRecovery(err, dir)
			}
		}
		if err := n.openGroup(g, budget); err != nil {
			return err
		}
	}
	if !n.data.HasGroups() {
		if err := n.data.RecordShards(shards); err != nil {
			return err
		}
	}
	if err := n.openGroup(&n.group, budget); err != nil {
		return err
	}
	n.sharded = newShardedQueue(n)
	return nil
}

// checkSharded returns an error if the node is to do what is only done with one shard.
func (n *Node) checkSharded() error {
	switch {
	case n.cfg.Backups != nil:
		return errors.New("a cluster with several shards makes no scheduled backups yet: leave out --backup-schedule")
	case n.cfg.Follow != nil:
		return errors.New("a cluster with several shards cannot be a standby yet: leave out --follow")
	}
	return nil
}

func (n *Node) openGroup(g *group, b budget) (err error) {
	serverID := n.data.ServerID()
	g.acks = ackguard.New(ackguard.Config{
		ServerID: serverID, Group: g.number, Logger: n.log,
		OnRollback: func(err error) { n.cfg.Fatal(datadir.WithRejoin(err, n.cfg.DataDir)) },
	})
	g.shard, err = openShard(shardConfig{
		Timing: cmp.Or(n.cfg.timing, DefaultTiming()), Number: g.number, ServerID: serverID, NodeID: n.cfg.NodeID,
		Dir: n.data.Shard(g.number), budget: b,
		Logger: n.log, Registry: n.registry, Host: host{n, g}, SentPart: n.cfg.sentPart,
		MaxClockOffset: n.cfg.MaxClockOffset, MetricsTopics: n.cfg.MetricsTopics,
		LogStore: n.data.LogStore(), wrapLog: n.cfg.wrapLog, files: n.cfg.files,
	})
	if err != nil {
		return err
	}
	if g.hasState, err = g.shard.hasState(); err != nil {
		return fmt.Errorf("look for Raft's state: %w", err)
	}
	return nil
}

// checkAcks returns an error if the data directory has lost what it acknowledged.
func (n *Node) checkAcks() error {
	for i, g := range n.groups {
		if !g.hasState {
			continue
		}
		servers, position, err := g.shard.logPosition()
		if err != nil {
			return err
		}
		if i == 0 { // a reply has the acknowledgements of all groups
			n.members.AskAcks(n.ctx, servers)
		}
		if err := g.acks.Check(position); err != nil {
			return datadir.WithRejoin(err, n.cfg.DataDir)
		}
	}
	return nil
}

func (n *Node) startRaft() error {
	for _, g := range n.groups {
		if err := n.startGroup(g); err != nil {
			return err
		}
	}
	n.raftRuns.Store(true)
	if n.shards() > 1 {
		poke(n.clusterNews) // the state may have the name already
		n.work.Go(n.beginGroups)
	}
	return nil
}

func (n *Node) startGroup(g *group) error {
	g.trans = g.acks.Transport(raftwire.Config{
		Layer: g.shard.prober.WatchConnections(n.members.Admission(n.mux.Raft(g.number))), Pool: transport.RaftPool, Timeout: transport.RaftTimeout, Stall: transport.RaftStall,
		Logger: g.shard.log.With("part", "raft"),
	})
	trans := boundAppends(g.trans)
	if n.cfg.wrapTransport != nil {
		trans = n.cfg.wrapTransport(trans)
	}
	if err := g.shard.start(trans); err != nil {
		return err
	}
	g.loop = newLoopWatch(g.shard, g.trans.Receiving)
	g.shard.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tarry_raft_silent_seconds", Help: "For how long Raft's main loop has not responded on this node; 0 while it does.",
	}, func() float64 { return n.raftSilent(g).Seconds() }))
	g.acks.Start(g.shard.raft)
	return nil
}

// shardOf returns the shard with the group's number; nil: this node does not have it, or not yet.
func (n *Node) shardOf(number uint32) *Shard {
	if int(number) >= len(n.groups) || !n.raftRuns.Load() {
		return nil
	}
	return n.groups[number].shard
}

// stopGroups stops what was started of the groups.
func (n *Node) stopGroups() (errs []error) {
	for _, g := range n.groups {
		if g.shard != nil {
			errs = append(errs, g.shard.stop())
		}
	}
	for _, g := range n.groups {
		if g.trans != nil {
			errs = append(errs, g.trans.Close())
		}
	}
	n.cache.Close()
	return errs
}

// guards returns what guards the acknowledgements of all groups.
func (n *Node) guards() (list ackguard.Guards) {
	for _, g := range n.groups {
		list = append(list, g.acks)
	}
	return list
}

// joinGroups makes the data groups known to membership.
func (n *Node) joinGroups() {
	for _, g := range n.dataGroups() {
		g.member = n.members.NewGroup(membership.GroupConfig{
			Number: g.number, Raft: func() *raft.Raft { return g.shard.raft },
			Version: g.shard.machine.Version, RaiseVersion: decisions{Shard: g.shard}.RaiseVersion, Committed: g.shard.committedConfiguration,
			Clocks: clocks{g.shard}, Acked: g.acks.Of, Disk: condition{n}.Disk, Logger: g.shard.log,
		})
	}
}

// inShard returns "shard 3: " for a data group, as the beginning of what is said of it; empty: it is
// group 0.
func (g *group) inShard() string {
	if g.number == 0 {
		return ""
	}
	return fmt.Sprintf("shard %d: ", g.number-1)
}

func (g *group) errorIn(err error) error {
	if g.number == 0 || err == nil {
		return err
	}
	return fmt.Errorf("shard %d: %w", g.number-1, err)
}
