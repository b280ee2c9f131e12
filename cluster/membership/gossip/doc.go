// Package gossip discovers the other nodes and reports which of them are alive. It
// wraps memberlist and knows nothing of Raft.
//
// Every node gossips one small record, Meta (meta.go): its ids, its addresses, and
// the cluster that it belongs to. Pool (pool.go) keeps the records of the
// nodes that are alive and notifies its owner when they change. The owner decides
// which nodes may be in the pool (Options.Admit), because two clusters that share an
// address must never merge.
//
// Without keys anybody can announce nodes. A pool that is full of them lets in a newcomer
// only if it answers a ping (newcomers.go).
//
// A node that is not alive here is only unreachable by gossip. That is never a reason
// to remove it from a cluster.
package gossip
