package cluster

import (
	"context"

	"tarry/auth"
	"tarry/cluster/router"
	"tarry/job"
	"tarry/job/jobpb"
)

// Queue is what a node serves to clients and to push: api.Queue and push.Queue, and what observes them.
type Queue interface {
	router.Calls
	Watch() job.Watch
	ConfiguredTopics(ctx context.Context, after string, max int, stale bool) ([]*jobpb.Topic, error)
	SettingsVersion() uint64
	// ObserveTimeouts lets f know of the reservations that expire, as this node applies them. f must
	// not block, nor keep the slice.
	ObserveTimeouts(f func([]job.Timeout))
}

// Queue returns the queue of all topics. With one shard it is the Shard itself: there is nothing
// between.
func (n *Node) Queue() Queue {
	if n.sharded == nil {
		return n.shard
	}
	return n.sharded
}

// shardedQueue is the queue of several shards.
type shardedQueue struct {
	*router.Queue
	n *Node
}

func newShardedQueue(n *Node) *shardedQueue {
	var shards []router.Group
	for _, g := range n.dataGroups() {
		shards = append(shards, g.shard)
	}
	return &shardedQueue{router.New(n.shard, shards), n}
}

// SettingsVersion implements push.Queue. Settings are decided in group 0.
func (q *shardedQueue) SettingsVersion() uint64 { return q.n.shard.SettingsVersion() }

// ObserveTimeouts implements Queue.
func (q *shardedQueue) ObserveTimeouts(f func([]job.Timeout)) {
	for _, g := range q.n.dataGroups() {
		g.shard.ObserveTimeouts(f)
	}
}

// Auth returns the tokens of clients and their settings, as this node has applied them. It is
// cheap and does not block.
func (n *Node) Auth() *auth.State { return n.shard.machine.Auth() }

// AuthChanged returns a channel that is closed when Auth may return another state. To miss no
// change, call it before Auth.
func (n *Node) AuthChanged() <-chan struct{} { return n.shard.machine.AuthChanged() }
