// Package stranger attacks the ports of a node as any client without credentials can:
// with random bytes, incomplete requests, and forged messages in the protocols of HTTP,
// beanstalkd, Raft, gRPC and gossip.
//
// An Attack is bounded in time and in bytes. It reports only that a node accepted a
// forged message. Its caller (chaos/fault) checks that the cluster is unharmed.
//
// It implements all protocols itself and shares no code with the server. Start with
// Attack in stranger.go; each other file has the attacks on one port.
package stranger
