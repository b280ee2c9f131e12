package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"tarry/internal/durable"
)

// Marks of a directory in which no node may start.
const (
	restoringFile  = "restoring"  // a backup is restored into it
	recoveringFile = "recovering" // its node is made the first one of a new cluster
)

// checkRestored returns an error if a restore into the directory was interrupted.
func (d *Dir) checkRestored() error {
	marked, err := d.marked(restoringFile)
	if err == nil && marked {
		err = unusable{fmt.Errorf("a restore into %s was interrupted, so it is not complete: run tarry restore with this directory again, which starts from the beginning", d.path)}
	}
	return err
}

// checkRecovered returns an error if a recovery of the directory was interrupted.
func (d *Dir) checkRecovered() error {
	marked, err := d.marked(recoveringFile)
	if err == nil && marked {
		err = unusable{fmt.Errorf("a recovery of %s was interrupted, so its state may have writes that its old cluster never committed: run the same tarry recover, with --as-only-voter or --peers, with this directory again, to its end", d.path)}
	}
	return err
}

func (d *Dir) marked(name string) (bool, error) {
	_, err := os.Stat(filepath.Join(d.path, name))
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, fmt.Errorf("data directory: %w", err)
}

// mark makes a mark durable.
func (d *Dir) mark(name string) error {
	if err := durable.Replace(vfs.Default, filepath.Join(d.path, name), nil); err != nil {
		return fmt.Errorf("mark the data directory: %w", err)
	}
	return nil
}

func (d *Dir) unmark(name string) error {
	err := os.Remove(filepath.Join(d.path, name))
	return errors.Join(err, durable.SyncDir(vfs.Default, d.path))
}

// OpenForRestore opens a directory to restore a backup into it: one that is empty or does
// not exist, or in which an earlier restore was interrupted, whose files it removes. No node
// starts in it before EndRestore.
func OpenForRestore(path, nodeID, logStore string) (*Dir, error) {
	return open(path, func(d *Dir) error {
		if err := d.empty(); err != nil {
			return err
		}
		if err := d.mark(restoringFile); err != nil {
			return err
		}
		return d.load(nodeID, logStore)
	})
}

// empty removes what an interrupted restore has left. It fails if there is anything else.
func (d *Dir) empty() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	interrupted := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == restoringFile })
	for _, e := range entries {
		name := e.Name()
		ours := name == shardName(0) || name == filepath.Base(d.file()) || strings.HasSuffix(name, ".tmp")
		switch {
		case name == "lock" || name == "lost+found" || name == restoringFile || name == restoringFile+".tmp":
		case !interrupted || !ours:
			return fmt.Errorf("%s is not empty: it has %s. A backup is restored into a new directory only: give another one, or move this one away", d.path, name)
		default:
			if err := os.RemoveAll(filepath.Join(d.path, name)); err != nil {
				return fmt.Errorf("remove what an interrupted restore has left: %w", err)
			}
		}
	}
	return nil
}

// EndRestore makes the directory one that a node may start in. Everything in it must be
// durable.
func (d *Dir) EndRestore() error {
	if err := d.unmark(restoringFile); err != nil {
		return fmt.Errorf("complete the restore: %w", err)
	}
	return nil
}

// BeginRecovery marks the directory, durably: no node starts in it before EndRecovery. It
// may be marked already.
func (d *Dir) BeginRecovery() error { return d.mark(recoveringFile) }

// Recovering reports whether a recovery has begun and not ended.
func (d *Dir) Recovering() (bool, error) { return d.marked(recoveringFile) }

// EndRecovery makes the directory one that a node may start in. Everything in it must be
// durable.
func (d *Dir) EndRecovery() error {
	if err := d.unmark(recoveringFile); err != nil {
		return fmt.Errorf("complete the recovery: %w", err)
	}
	return nil
}

// OpenStopped opens the directory of a node that is stopped, whatever its id and its log
// store are, also if a recovery of it was interrupted. It creates nothing, and fails if there
// is no node's data in it.
func OpenStopped(path string) (*Dir, error) {
	if _, err := os.Stat(filepath.Join(path, "node.json")); err != nil {
		return nil, fmt.Errorf("%s is no data directory of a node: %w", path, err)
	}
	return open(path, (*Dir).loadStopped)
}

// OpenToRead is OpenStopped of a directory in which nothing may change. A copy may be without the
// lock file, which is not created.
func OpenToRead(path string) (*Dir, error) {
	lock, err := os.Open(filepath.Join(path, "lock"))
	switch {
	case err == nil:
		return openLocked(path, lock, (*Dir).loadStopped)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("data directory: %w", err)
	}
	d := &Dir{path: path}
	if err := d.loadStopped(); err != nil {
		return nil, err
	}
	return d, nil
}

// loadStopped reads the identity, whatever it is.
func (d *Dir) loadStopped() error {
	if err := d.checkRestored(); err != nil {
		return err
	}
	data, err := os.ReadFile(d.file())
	if err != nil {
		return fmt.Errorf("read the node's identity: %w", err)
	}
	id, err := decodeIdentity(data)
	if err != nil {
		return fmt.Errorf("%s is damaged: %w", d.file(), err)
	}
	return d.load(id.NodeID, "")
}
