// Package store manages the files of one replicated state: it opens a Pebble store and
// detects lost records, sends the store to another node as one stream of bytes, and
// replaces it by a received one. It does not depend on the content of the records. Of the
// project it imports internal/durable alone. Like fsm it reads no clock and no randomness
// and starts no goroutine; it accesses files through Pebble's vfs.
//
// Start with Dir (dir.go), which has the layout:
//
//	CURRENT           names the live generation
//	gen-000001/       the store of a generation
//	gen-000002.tmp/   a generation that is being received
//	checkpoint-7/     a fixed copy of a store, while it is sent
//
// A generation is complete before CURRENT names it, and CURRENT is replaced in one
// step. So a crash leaves either the old state or the new one, and OpenDir removes the
// leftovers.
//
//	dir.go              Dir: the generations, CURRENT, leftovers of crashes
//	open.go             Dir.Open and Dir.Inspect; Store, its Flush and Checkpoint; Damaged
//	options.go          how Pebble is configured
//	manifest_index.go   the file LOGS: how much of Pebble's manifest must exist
//	pebble_manifest.go  Pebble's manifest: its name is durable, its checksum in LOGS
//	old_logs.go         the write-ahead logs of a store of version 0.1, at its first Open
//	table_footer.go     tables end with the version of their format
//	check.go            Check: all files of a store that nothing uses, without a change to them
//	archive_index.go    the format of an archive
//	archive.go          Archive: a checkpoint read as an archive
//	receiver.go         Receiver: an archive written to a new generation
//	incremental.go      OpenBackup: an archive without the files that its base has
//	compose.go          Compose: an archive and its base read as a whole one
//
// To receive a state: Dir.Receive, Receiver.Write, Finish and Keep, then
// Dir.SetLive and Dir.Open.
package store
