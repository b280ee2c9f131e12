// Package diskspace tells when the disk below a directory is about to be full.
//
// Below a low-water mark the disk is low; it is not low any more once the free
// space is a quarter above the mark, so that it does not go to and fro. What
// follows from that is decided elsewhere: package cluster refuses adds and
// shortens the log, so that what lies below the mark is a reserve for finishing,
// deleting and compacting.
//
// It knows a path and a number of bytes, nothing of Raft or jobs. Start at Watch.
package diskspace
