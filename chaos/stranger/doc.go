// Package stranger attacks the ports of a node as anybody can who reaches them: with
// garbage, with half of a request, with lies in the protocols of HTTP, beanstalkd,
// Raft, gRPC and gossip.
//
// An Attack is bounded in time and in bytes, and does not know what it should lead
// to. Whether the cluster is unharmed is judged by who runs it (chaos/fault); an
// attack itself says only that a node believed it.
//
// It speaks all protocols by itself and shares no code with the server. Start with
// Attack in stranger.go; each other file has the attacks on one port.
package stranger
