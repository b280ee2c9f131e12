// Package standby makes a cluster follow another one. A Follower runs on the leader of the
// standby: it reads the committed entries of the primary's log from any of its nodes and has
// them proposed in its own log, in order. It knows no Raft and no network: its Options have
// both.
//
//	follower.go  Follower: sessions with the primary, runs of entries
//	progress.go  how far it is behind
package standby
