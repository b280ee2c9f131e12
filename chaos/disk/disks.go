//go:build linux

package disk

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// Disks are the disks of a cluster's nodes, one for each.
type Disks struct {
	dir string

	mu    sync.Mutex
	disks map[string]*Disk
}

// NewDisks keeps disks below dir, which exists, and removes mounts of processes
// that are gone.
func NewDisks(dir string) (*Disks, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	if _, err := RemoveStale(); err != nil {
		return nil, err
	}
	return &Disks{dir: dir, disks: make(map[string]*Disk)}, nil
}

// Add makes the disk of a node.
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

// Of is the disk of the node with the id; nil when it was not added.
func (s *Disks) Of(id string) *Disk {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.disks[id]
}

// dataName is the node's data directory on its disk. It is not the disk itself,
// so that it can be removed.
const dataName = "data"

// DataDir is the node's data directory, for localcluster.Options. The node was
// added.
func (s *Disks) DataDir(id string) string { return filepath.Join(s.Of(id).Path(), dataName) }

// Files is where the files of the data directory are, below the faults.
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
