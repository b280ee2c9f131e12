package diskspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// BallastFile is the name, below the directory, of a file that only takes up space. It is
// removed when a node starts on a full disk, because a start needs some free space.
// Without it only a larger disk would help. It is created again when the disk has enough
// free space.
const BallastFile = "ballast"

// ballastMost is the most that a start writes before it frees any space: the
// memtables of the state, four of 32 MiB, with what the Raft log has and they had.
const ballastMost = 128 << 20

// ballastOf returns the size for a mark: at most half of the space that is kept free.
func ballastOf(mark uint64) uint64 { return min(mark/2, ballastMost) }

func (w *Watch) ballast() string { return filepath.Join(w.o.Dir, BallastFile) }

// dropBallast removes the ballast if the disk is almost full, and reports whether it did.
func (w *Watch) dropBallast() bool {
	s := w.State()
	if s.Free >= ballastOf(s.Mark)/2 {
		return false
	}
	err := os.Remove(w.ballast())
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false
	case err != nil:
		w.o.Logger.Warn("could not remove the ballast from a full disk", "error", err)
		return false
	}
	w.o.Logger.Warn("removed the ballast, because the disk is full; finish or delete jobs, or free disk space", "file", w.ballast())
	return true
}

// ensureBallast creates the ballast when there is space for it above the mark.
func (w *Watch) ensureBallast() {
	s := w.State()
	size := ballastOf(s.Mark)
	if w.ballasted || size == 0 || s.Low || s.Free < s.Mark+s.Mark/4+size {
		return
	}
	w.ballasted = true // after a failure the next start tries again
	if info, err := os.Stat(w.ballast()); err == nil && uint64(info.Size()) == size {
		return
	}
	if err := createBallast(w.ballast(), size); err != nil {
		w.o.Logger.Warn("could not create the ballast; if the disk becomes full, the node needs free space to restart", "error", err)
	}
}

// createBallast creates the whole file or none.
func createBallast(path string, size uint64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(allocate(f, size), f.Close())
	if err != nil {
		return errors.Join(fmt.Errorf("allocate %d bytes for %s: %w", size, path, err), os.Remove(path))
	}
	return nil
}
