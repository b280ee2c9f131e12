// Package store keeps the files of one replicated state: it opens a Pebble store
// that does not lose records unnoticed, sends it to another node as one stream of
// bytes, and replaces it by one that was received. It knows nothing of what the
// records mean and imports no other package of the project. Like fsm it reads no
// clock and no randomness and starts no goroutine; its files come in through
// Pebble's vfs.
//
// Start with Dir (dir.go), which has the layout:
//
//	CURRENT           names the live generation
//	gen-000001/       the store of a generation
//	gen-000002.tmp/   a generation that is being received
//	checkpoint-7/     a store held still while it is sent
//
// A generation is complete before CURRENT names it, and CURRENT is replaced in one
// step, so that a crash leaves either the old state or the new one. OpenDir removes
// what else a crash leaves behind.
//
//	dir.go              Dir: the generations, CURRENT, what a crash leaves
//	open.go             Dir.Open and Dir.Inspect; Damaged
//	options.go          how Pebble is set up
//	wal_index.go        which write-ahead logs there must be, kept in the file LOGS
//	wal_index_file.go   the format of LOGS
//	pebble_manifest.go  Pebble's manifest: durable by name, known to the index
//	archive_index.go    the format of an archive
//	archive.go          Archive: a checkpoint read as an archive
//	receiver.go         Receiver: an archive written to a new generation
//
// To receive a state: Dir.Receive, Receiver.Write, Finish and Keep, then
// Dir.SetLive and Dir.Open.
package store
