package logstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/types"
	"go.etcd.io/bbolt"

	"tarry/internal/hook"
)

// ErrInUse is wrapped by the error of Open when another process has the files open.
var ErrInUse = errors.New("it is in use by another process")

// Disk is what the stores keep their data on. The simulation of power losses
// gives one of its own; everywhere else it is files below a directory.
type Disk struct {
	Segments types.VFS        // the log's entries
	Meta     types.MetaStore  // the log's list of segments
	Stable   raft.StableStore // term and vote
	// SegmentBytes is the size of one segment; 0: the log's default, 64 MiB.
	SegmentBytes int
}

// close closes what the log does not close by itself.
func (d *Disk) close() error {
	err := d.Meta.Close()
	if c, ok := d.Stable.(io.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	return err
}

// openDisk makes or opens the files below dir.
func openDisk(dir string) (*Disk, error) {
	walDir := filepath.Join(dir, logDir)
	if err := os.MkdirAll(walDir, 0o750); err != nil {
		return nil, fmt.Errorf("log directory: %w", err)
	}
	if err := checkList(walDir); err != nil {
		return nil, err
	}
	// The stable store goes first: its lock says that dir is in use.
	for _, path := range []string{filepath.Join(dir, stableFile), filepath.Join(dir, logDir, metadb.FileName)} {
		if err := checkBolt(path); err != nil {
			return nil, err
		}
	}
	stable, err := raftboltdb.New(raftboltdb.Options{
		Path:        filepath.Join(dir, stableFile),
		BoltOptions: &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, Timeout: lockWait},
	})
	if errors.Is(err, bbolt.ErrTimeout) {
		return nil, fmt.Errorf("stable store in %s: %w", dir, ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("open the stable store in %s: %w", dir, err)
	}
	d := &Disk{Segments: walfs.New(), Meta: new(metadb.BoltMetaDB), Stable: stable}
	if hook.Mutant(hook.SkipFsync) {
		d.Segments = Unsynced(d.Segments)
	}
	return d, nil
}

// checkList refuses segments without the list of them: the log would take them for
// leftovers and remove them.
func checkList(walDir string) error {
	_, err := os.Stat(filepath.Join(walDir, metadb.FileName))
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	segments, err := filepath.Glob(filepath.Join(walDir, "*.wal"))
	if err == nil && len(segments) > 0 {
		err = fmt.Errorf("%s is missing, the list of segments of the log, and %d segments are there", filepath.Join(walDir, metadb.FileName), len(segments))
	}
	return err
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
