// Package membership forms a cluster and maintains its list of members:
// discovery, the first configuration, joining, promotion, removal.
//
// It knows Raft's configuration and the other nodes' gossip, nothing of jobs. The
// node builds Raft and a gRPC server and connects this package to them (Config,
// Register, Start, Lead, Stop: start reading at membership.go). The cluster's id and
// the list of forgotten servers are written to the log through callbacks.
//
// The leader calls every member for its status every two seconds (ask.go). These calls
// also carry the input of three other packages: acknowledgements (ackguard), the time
// (clockguard) and the health of disks (diskpolicy). evaluate.go calls the latter two.
//
// The rules, each in its file:
//
//   - A Raft server id is "<node id>.<incarnation>". A node whose data is gone
//     returns under a new incarnation, and so as a new server. The votes and
//     acknowledgements of the old server never count for the new one.
//   - A node without Raft state takes part in no vote before a cluster has
//     invited it by server id (admission.go). Otherwise the messages meant for
//     the old server at the same address would reach an empty log.
//   - There is at most one first configuration (bootstrap.go). It contains only nodes
//     that expect the same number of voters, have found no node with state, and have
//     promised themselves to one proposer.
//   - The leader adds the live nodes of gossip that reply (newcomers.go) to the
//     configuration (reconcile.go). It never removes a server because it is silent. A
//     server is removed by an operator (operate.go) or because its node id returned as
//     another incarnation, and only if the remaining live voters are a quorum (quorum.go).
//   - A removed server is first forgotten through the log, then removed. So no
//     leader adds it again, and any leader can complete the removal. If an operator
//     removed it, the log has its node id, too, and no server of that node joins
//     before an operator admits it (removed.go).
//   - An operator can make the leader take in only servers that show a certificate or an
//     invitation (invited.go). Invite is what the leader says to a server that may join.
//   - Two clusters never merge (binding.go). Gossip refuses members of another
//     cluster, and a node in no cluster binds itself to the first one it discovers.
package membership
