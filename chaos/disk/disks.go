//go:build linux

package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Disks are the disks of a cluster's nodes, one for each, made when it is first
// asked for.
type Disks struct {
	dir string

	mu    sync.Mutex
	disks map[string]*Disk
	err   error // of the first disk that could not be made
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

// Of is the disk of the node with the id; nil when it could not be made, see Err.
func (s *Disks) Of(id string) *Disk {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.disks[id]; d != nil || s.err != nil {
		return d
	}
	dir := filepath.Join(s.dir, id+"-disk")
	if s.err = os.MkdirAll(dir, 0o755); s.err != nil {
		return nil
	}
	d, err := Mount(dir)
	if err != nil {
		s.err = fmt.Errorf("disk of node %s: %w", id, err)
		return nil
	}
	s.disks[id] = d
	return d
}

// dataName is the node's data directory on its disk. It is not the disk itself,
// so that it can be removed.
const dataName = "data"

// DataDir is the node's data directory, for localcluster.Options.
func (s *Disks) DataDir(id string) string {
	d := s.Of(id)
	if d == nil {
		return filepath.Join(s.dir, id+"-disk", "failed", dataName) // Err says why
	}
	return filepath.Join(d.Path(), dataName)
}

// Files is where the files of the data directory are, below the faults.
func (d *Disk) Files() string { return filepath.Join(d.Backing(), dataName) }

// Err is why a disk could not be made.
func (s *Disks) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

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
