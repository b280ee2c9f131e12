// Package gossip finds the other nodes and says which of them are alive. It
// wraps memberlist and knows nothing of Raft.
//
// Every node spreads one small record, Meta (meta.go): who it is, how to reach
// it, and which cluster it belongs to. Pool (pool.go) keeps the records of the
// nodes that are alive and wakes its owner when they change. Whether a node may
// be in the pool at all is the owner's decision (Options.Admit), because two
// clusters that share an address must never become one.
//
// A node that is not alive here is only that: not heard of. Nothing is removed
// from a cluster on such a sign.
package gossip
