// Package leaderprobe detects that the leader is gone before Raft's heartbeat timeout
// does, and starts an election.
//
// Raft detects a lost leader only by missing heartbeats. It checks at random moments,
// which takes up to three heartbeat timeouts. A TCP connection distinguishes a leader
// that is gone from one that is slow. If its process has ended, the machine refuses
// connections to its port; if its machine is gone, nothing replies; if the machine is
// only busy, its kernel still accepts connections. So a follower probes the leader's
// port, with a connection on which nothing is sent, in two cases:
//
//   - A connection from another node ends (connloss.go). The kernel closes the
//     connections of an ended process within a millisecond. If the port refuses the
//     probe, the follower stands for election at once.
//   - The leader has sent nothing for a while (silence.go), as when its machine is
//     gone. If nothing replies, the follower makes Raft check its heartbeat at once.
//
// The package decides only when to probe. Raft decides whether there is an election and
// who wins it. The package knows Raft and TCP, and nothing of jobs. Start at Prober.
package leaderprobe
