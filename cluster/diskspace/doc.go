// Package diskspace reports when the disk below a directory is almost full.
//
// The disk is low while its free space is below a low-water mark. It is no longer low
// once the free space is a quarter above the mark, so that it does not alternate.
// Package cluster then refuses adds and shortens the log, so that the space below the
// mark is a reserve for finishing, deleting and compacting.
//
// It knows a path and a number of bytes, nothing of Raft or jobs. Start at Watch.
package diskspace
