// Package statemachine is the adapter between Raft and fsm.Machine.
//
// Adapter is Raft's FSM: it passes committed entries to the machine and returns the
// results (adapter.go). A machine keeps its state on disk together with the applied index,
// so a snapshot of Raft is virtual (snapshots.go):
//
//   - The machine is its own newest snapshot. List returns its applied index, and
//     with NoSnapshotRestoreOnStart, which the node must set, Raft continues from
//     there.
//   - Taking a snapshot makes the state durable and records the index that Raft has
//     reached. It costs the same for ten jobs and ten million. After that the log up to
//     that index may be truncated.
//   - The state is read, as a stream from a checkpoint, only for a follower that is too
//     far behind. Index, term and configuration come from the stream itself, never from
//     the running machine, which is ahead of it by then.
//   - A received snapshot is built beside the live state and replaces it in one
//     step. A failure before that step leaves the old state in use; a failure after it
//     ends the process.
//
// CheckStart (start.go) verifies before Raft starts that state and log fit together,
// and drops a log that an installed snapshot has superseded.
//
// The package knows Raft's and the machine's interfaces, no network and no clock.
package statemachine
