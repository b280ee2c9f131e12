package logstore

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"

	"tarry/internal/hook"
)

// Disk is what the stores keep their data on. The simulation of power losses
// gives one of its own; everywhere else it is files below a directory.
type Disk struct {
	Segments types.VFS // the log's entries
	Records  vfs.FS    // the log's list of segments, term and vote
}

// openDisk makes the directories below dir.
func openDisk(dir string) (*Disk, error) {
	if err := os.MkdirAll(filepath.Join(dir, logDir), 0o700); err != nil {
		return nil, fmt.Errorf("log directory: %w", err)
	}
	d := &Disk{Segments: walfs.New(), Records: vfs.Default}
	if hook.Mutant(hook.SkipFsync) {
		d.Segments = Unsynced(d.Segments)
	}
	return d, nil
}

// Unsynced is fs, except that it says it has synced and has not. It is the
// mutant that a simulated power loss must find out.
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
