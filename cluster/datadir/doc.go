// Package datadir opens a node's data directory, checks which node it belongs to, and
// locks it for one process.
//
// A directory has an identity (node.json): the node's id, and an incarnation that
// differs from that of every earlier directory of a node with this name. Each part of
// a shard names the server that it belongs to, so that parts of two copies cannot be
// mixed. Directories and files are created durably: after a power failure one is
// complete or does not exist.
//
// The package also has the instructions for an operator whose node cannot use its
// directory (recovery.go), and opens a stopped node's directory for the commands that restore
// a backup or recover a lost majority (offline.go), which mark it so that no node starts in it
// before they are done. It knows nothing of Raft or of the stores below it.
// Start at Open.
package datadir
