// Package transport multiplexes all traffic between nodes over one TCP port:
// the Raft traffic of each shard, calls with gRPC and calls in frames.
//
// Every connection starts with a header (header.go) with the dialer's wire version, the
// protocol that follows, the dialer's cluster and server id, and the id of the server
// that it wants to reach. A node that has taken over another node's address refuses the
// connection. The acceptor replies before any payload, so that a node of another
// cluster, a newer release or a foreign client gets a reason. All later bytes are
// Raft's, gRPC's or frames. A node that has not joined a cluster yet leaves the cluster empty.
//
// Raft and calls have separate queues and limits (listener.go), so a full or slow
// server of calls never delays a heartbeat. Addresses are names: a listener's address is the
// advertised host:port, and a name is resolved at every dial, because addresses in
// Raft's configuration outlive the IPs.
//
// The package knows nothing of Raft's or gRPC's messages. Start at Listen in
// mux.go; dial.go is the other end.
package transport
