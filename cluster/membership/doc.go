// Package membership forms a cluster and keeps its list of members right:
// discovery, the first configuration, joining, promotion, removal.
//
// It knows Raft's configuration and the other nodes' gossip, nothing of jobs.
// The node builds Raft and a gRPC server and wires this package in (Config,
// Register, Start, Lead, Stop; see membership.go). What goes through the log,
// the cluster's id and the list of forgotten servers, goes through callbacks.
//
// The rules, each in its file:
//
//   - A Raft server id is "<node id>.<incarnation>". A node whose data is gone
//     comes back under a new incarnation and so as a new server; what the old
//     one promised in votes and acknowledgements is never counted for the new.
//   - A node without Raft state takes part in no vote before a cluster has
//     asked for it by server id (gate.go). Otherwise the messages meant for
//     the old server at the same address would reach an empty log.
//   - At most one first configuration (bootstrap.go): only nodes that expect the
//     same number, see nobody with state, and have promised themselves to one
//     proposer, are in it.
//   - The leader makes the configuration follow the gossip (reconcile.go), but
//     only by adding. Silence removes nobody. A server is removed by an operator
//     (remove.go) or because its node id came back as another incarnation, and
//     only when the voters that are left alive are a quorum (quorum.go).
//   - A removed server is first forgotten through the log, then removed, so no
//     leader adds it again and any leader can complete the removal.
//   - A node whose clock is off the majority's does not lead (clocks.go).
//   - Two clusters never merge (affiliation.go): gossip refuses members of
//     another cluster, and a node in no cluster binds itself to the first that it
//     hears of.
package membership
