//go:build !linux

package logstore

import "github.com/hashicorp/raft-wal/types"

// syncData makes a file's data durable, and its size, which is needed to read the data.
func syncData(f types.WritableFile) error {
	if d, ok := f.(dataSyncer); ok {
		return d.SyncData()
	}
	return f.Sync()
}
