package datadir

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"

	"tarry/cluster/diskspace"
	"tarry/internal/durable"
)

// Dir is a data directory that this process alone uses.
type Dir struct {
	path string
	lock *os.File // nil: of a copy without the file, see OpenToRead
	id   identity
}

// Open opens the directory or creates it, locks it, and reads or creates its identity. It
// returns an error if the directory is in use, or belongs to another node, another layout,
// another log store, or a node that has left its cluster, or if a restore into it or a recovery
// of it was interrupted. An empty logStore is the one
// with which the directory was created, and OriginalLogStore for a new directory.
func Open(path, nodeID, logStore string) (*Dir, error) {
	return open(path, func(d *Dir) error {
		if err := errors.Join(d.checkRestored(), d.checkRecovered()); err != nil {
			return err
		}
		return errors.Join(d.load(nodeID, logStore), d.restrictAccess())
	})
}

// open locks the directory, which it creates if there is none, and calls prepare.
func open(path string, prepare func(*Dir) error) (*Dir, error) {
	if err := durable.MkdirAll(vfs.Default, path); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	return openLocked(path, lock, prepare)
}

func openLocked(path string, lock *os.File, prepare func(*Dir) error) (*Dir, error) {
	if err := lockAlone(lock); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("data directory %s is in use by another process", path)
		}
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	d := &Dir{path: path, lock: lock}
	if err := prepare(d); err != nil {
		lock.Close()
		return nil, err
	}
	return d, nil
}

// restrictAccess removes the permissions of other users on the files of a directory that an
// older release created. It does not change the directory itself, which may be a mount
// point or have other content. The files below a shard's directory are only accessible
// through it.
func (d *Dir) restrictAccess() error {
	for _, name := range []string{"lock", filepath.Base(d.file()), diskspace.BallastFile, shardName(0)} {
		path := filepath.Join(d.path, name)
		info, err := os.Stat(path)
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			err = os.Chmod(path, info.Mode().Perm()&^0o077)
		}
		// Some file systems have no modes.
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) && !errors.Is(err, errors.ErrUnsupported) {
			return fmt.Errorf("restrict access to the data directory: %w", err)
		}
	}
	return nil
}

// ServerID returns Raft's id of the node of this directory.
func (d *Dir) ServerID() string { return d.id.serverID() }

// LogStore returns the name of the log store with which the directory was created.
func (d *Dir) LogStore() string { return cmp.Or(d.id.LogStore, OriginalLogStore) }

// NodeID returns the id of the node of this directory.
func (d *Dir) NodeID() string { return d.id.NodeID }

// Shard returns the directory of a shard. ClaimShard creates it.
func (d *Dir) Shard(number uint32) string { return ShardIn(d.path, number) }

// ShardIn is Dir.Shard of a data directory that is not open.
func ShardIn(path string, number uint32) string { return filepath.Join(path, shardName(number)) }

// MarkLeft records that this directory's node has left its cluster.
func (d *Dir) MarkLeft() error {
	d.id.Left = true
	return d.save()
}

// Close unlocks the directory for other processes.
func (d *Dir) Close() error {
	if d.lock == nil {
		return nil
	}
	return d.lock.Close()
}

func shardName(n uint32) string { return fmt.Sprintf("shard-%d", n) }

// lockAlone locks a file for this process. InUse has such a file locked for a moment, so a
// lock counts as held only after several attempts.
func lockAlone(f *os.File) (err error) {
	for attempt := range lockAttempts {
		if attempt > 0 {
			time.Sleep(lockPause)
		}
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
	}
	return err
}

const (
	lockAttempts = 20
	lockPause    = 25 * time.Millisecond
)

// InUse reports whether a process has the directory open, as a node that runs. It creates
// nothing.
func InUse(path string) bool {
	f, err := os.Open(filepath.Join(path, "lock"))
	if err != nil {
		return false
	}
	defer f.Close() // and with it the lock
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}
