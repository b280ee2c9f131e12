// Package transport carries all that nodes say to each other over one TCP port:
// the Raft traffic of each shard and the node-to-node RPC.
//
// Every connection starts with a header (header.go) that says which wire version
// the dialer speaks, what it wants to talk about, to which cluster it belongs, who it
// is and which server it means: a node that has got another one's address refuses.
// The acceptor answers before any payload, so that a node of another cluster, a
// newer release or a stranger gets a reason instead of garbage. After that the
// bytes belong to Raft or gRPC. The dialer names its cluster only if it has one
// already: a node that is about to join has none.
//
// Raft and RPC have queues and limits of their own (listener.go): a full or slow
// RPC server never keeps a heartbeat waiting. Addresses are names: what a
// listener says of itself is the advertised host:port, and a name is resolved at
// every dial, because addresses in Raft's configuration outlive the IPs.
//
// The package knows nothing of Raft's or gRPC's messages. Start at Listen in
// mux.go; dial.go is the other end.
package transport
