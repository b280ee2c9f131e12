package datadir

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"

	"tarry/cluster/diskspace"
	"tarry/internal/durable"
)

// Dir is a data directory that this process alone uses.
type Dir struct {
	path string
	lock *os.File
	id   identity
}

// Open makes or opens the directory, locks it, and reads or gives its
// identity. It refuses one that is in use, of another node, of a newer layout,
// of another log store, or of a node that has left its cluster. With an empty
// logStore it takes the one with which the directory was made; a new directory
// gets OriginalLogStore then.
func Open(path, nodeID, logStore string) (*Dir, error) {
	if err := durable.MkdirAll(vfs.Default, path); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("data directory %s is in use by another process", path)
		}
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	d := &Dir{path: path, lock: lock}
	err = d.load(nodeID, logStore)
	if err == nil {
		err = d.closeToOthers()
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	return d, nil
}

// closeToOthers takes away what others may do with the files of a directory that an
// older release made. It leaves the directory itself as it is: it may be a mount
// point, or hold more than a node's data. What is below a shard's directory cannot
// be reached without it.
func (d *Dir) closeToOthers() error {
	for _, name := range []string{"lock", filepath.Base(d.file()), diskspace.BallastFile, shardName(0)} {
		path := filepath.Join(d.path, name)
		info, err := os.Stat(path)
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			err = os.Chmod(path, info.Mode().Perm()&^0o077)
		}
		// A file system without modes has none to change.
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) && !errors.Is(err, errors.ErrUnsupported) {
			return fmt.Errorf("close the data directory to other users: %w", err)
		}
	}
	return nil
}

// ServerID returns Raft's id of the node of this directory.
func (d *Dir) ServerID() string { return d.id.serverID() }

// LogStore returns the name of the log store with which the directory was made.
func (d *Dir) LogStore() string { return cmp.Or(d.id.LogStore, OriginalLogStore) }

// Shard returns the directory of a shard. ClaimShard makes it.
func (d *Dir) Shard(number uint32) string { return filepath.Join(d.path, shardName(number)) }

// MarkLeft records that this directory's node is no longer part of its cluster.
func (d *Dir) MarkLeft() error {
	d.id.Left = true
	return d.save()
}

// Close gives the directory up: another process may open it then.
func (d *Dir) Close() error { return d.lock.Close() }

func shardName(n uint32) string { return fmt.Sprintf("shard-%d", n) }
