// Package ackguard wraps Raft's transport and records what servers acknowledge. So a
// server whose data directory was replaced by an older copy is detected before it votes
// or acknowledges anything again.
//
// Raft relies on what a server has acknowledged: a vote in a term, an entry as part
// of a majority. After a rollback of the directory that is no longer on disk, and a
// leader that lacks acknowledged entries could win an election. So every node remembers
// the acknowledgements of the others (acks.go). The wrapper of Raft's transport records
// each before Raft counts it (transport.go). Nodes exchange their records; the
// owner of a Guard does that (Known, Merge). A node that has acknowledged more than is
// on its disk does not start (Check) or ends its process (Config.OnRollback).
//
// The wrapper also sees every message to Raft, so two checks that Raft lacks are here.
// It drops messages that no correct server sends (rpccheck.go), and a late heartbeat
// cannot lower the term (heartbeat.go). From the replies to its own requests a leader
// confirms, for a read, that it still leads (confirm.go).
//
// The package knows Raft, its configuration and its transport; nothing of gossip,
// jobs or how nodes exchange acknowledgements. Start reading at acks.go.
package ackguard
