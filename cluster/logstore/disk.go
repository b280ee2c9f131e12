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

// Disk is what the stores keep their data on. The simulation of power losses
// gives one of its own; everywhere else it is files below a directory.
type Disk struct {
	Segments types.VFS // the entries of raft-wal
	Records  vfs.FS    // the list of segments, the watermark, term and vote
	// BoltDir is the directory of raft-boltdb's file, which is a real one always:
	// bbolt maps it into memory. Empty: the directory of the stores. WrapBolt, when not
	// nil, is put around raft-boltdb, before anybody counts on what it has stored.
	BoltDir  string
	WrapBolt func(path string, log raft.LogStore) raft.LogStore
}

// openDisk makes the directories that a kind of log needs below dir.
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
