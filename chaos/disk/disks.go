//go:build linux

package disk

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// Disks has one disk for each node of a cluster.
type Disks struct {
	dir string

	mu    sync.Mutex
	disks map[string]*Disk
}

// NewDisks keeps disks below dir, which must exist, and removes mounts of processes that
// have ended.
func NewDisks(dir string) (*Disks, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	if _, err := RemoveStale(); err != nil {
		return nil, err
	}
	return &Disks{dir: dir, disks: make(map[string]*Disk)}, nil
}

// Add creates the disk of a node.
func (s *Disks) Add(id string) error {
	dir := filepath.Join(s.dir, id+"-disk")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	d, err := Mount(dir)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disks[id] = d
	return nil
}

// Of returns the disk of a node; nil: it was not added.
func (s *Disks) Of(id string) *Disk {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.disks[id]
}

// dataName is the node's data directory on its disk. It is not the disk itself,
// so that it can be removed.
const dataName = "data"

// DataDir returns the data directory of an added node, for localcluster.Options.
func (s *Disks) DataDir(id string) string { return filepath.Join(s.Of(id).Path(), dataName) }

// Files returns the backing directory of the data directory.
func (d *Disk) Files() string { return filepath.Join(d.Backing(), dataName) }

// Heal ends the faults of all disks.
func (s *Disks) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.disks {
		d.Heal()
	}
}

// Close unmounts all disks. The nodes must have ended.
func (s *Disks) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, d := range s.disks {
		errs = append(errs, d.Close())
	}
	s.disks = nil
	return errors.Join(errs...)
}
