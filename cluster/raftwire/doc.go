// Package raftwire is Raft's transport between nodes: hashicorp/raft's messages in frames of
// a fixed binary format.
//
// Raft's own transport encodes messages with msgpack by reflection, without bounds, and
// hands every reply to goroutines of those who wrap it. Here a message is encoded by
// hand into one buffer and sent with one write (codec.go). Its length, and the number and
// sizes of its entries, are checked before memory is allocated for them (frame.go). Who
// wraps the transport sees requests and replies on the goroutine that read them
// (Config.Accept, Config.Appended).
//
// The rest is as in Raft's transport. A connection carries one request after the other,
// and the replies in the same order. Idle connections are pooled (client.go). Appends are
// pipelined on a connection of their own, so they never delay a heartbeat (pipeline.go).
// A snapshot follows its request as it is, and its connection is not used again.
// Heartbeats go to a handler that does not wait for Raft's main goroutine (server.go).
//
// The package knows nothing of nodes and jobs; the stream layer decides who may connect.
// Start at New in transport.go.
package raftwire
