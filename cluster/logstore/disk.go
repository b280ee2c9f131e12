package logstore

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"

	"tarry/internal/hook"
)

// Disk holds the stores' files. The simulation of power losses supplies one; everywhere
// else it is files below a directory.
type Disk struct {
	Segments types.VFS // the entries of raft-wal
	Records  vfs.FS    // the list of segments, the watermark, term and vote
	// BoltDir is the directory of raft-boltdb's file; empty: the directory of the stores.
	// It is always a real file, because bbolt maps it into memory. WrapBolt, if not nil,
	// returns the log to use in place of raft-boltdb's.
	BoltDir  string
	WrapBolt func(path string, log raft.LogStore) raft.LogStore
}

// openDisk creates the directories that a kind of log needs below dir.
func openDisk(dir string, kind Kind) (*Disk, error) {
	logs := dir
	if kind == RaftWAL {
		logs = filepath.Join(dir, logDir)
	}
	if err := os.MkdirAll(logs, 0o700); err != nil {
		return nil, fmt.Errorf("log directory: %w", err)
	}
	d := &Disk{Segments: walfs.New(), Records: vfs.Default}
	if hook.Mutant(hook.SkipFsync) {
		d.Segments = Unsynced(d.Segments)
	}
	return d, nil
}

// Unsynced returns fs with syncs that do nothing and report success. It is the
// mutant that a simulated power loss must detect.
func Unsynced(fs types.VFS) types.VFS { return unsynced{fs} }

type unsynced struct{ types.VFS }

func (u unsynced) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := u.VFS.Create(dir, name, size)
	return unsyncedFile{f}, err
}

func (u unsynced) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := u.VFS.OpenWriter(dir, name)
	return unsyncedFile{f}, err
}

type unsyncedFile struct{ types.WritableFile }

func (unsyncedFile) Sync() error { return nil }
