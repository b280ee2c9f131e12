// Package statemachine is the adapter between Raft and fsm.Machine.
//
// Adapter is Raft's FSM: it hands committed entries to the machine and the
// results back (adapter.go). A machine keeps its state on disk, with the applied
// index in it, so a snapshot of Raft is a virtual one (snapshots.go):
//
//   - The machine is its own newest snapshot. List says how far it has come, and
//     with NoSnapshotRestoreOnStart, which the node must set, Raft goes on from
//     there.
//   - Taking a snapshot makes the state durable and writes down the point that
//     Raft has reached, nothing more: it costs the same for ten jobs and ten
//     million. After that the log up to there may go.
//   - Only for a follower that is too far behind is the state read, as a stream
//     from a checkpoint. Index, term and configuration come from the stream
//     itself, never from the running machine, which has moved on by then.
//   - A received snapshot is built beside the live state and replaces it in one
//     step. A failure before that step leaves the old state serving; one after it
//     ends the process.
//
// CheckStart (start.go) proves before Raft starts that state and log fit together,
// and drops a log that an installed snapshot has overtaken.
//
// raft.Restore is not for this store: it invents an index that no archive has.
// The package knows Raft's and the machine's interfaces, no network and no clock.
package statemachine
