package recovery

import (
	"context"
	"errors"
	"fmt"
	"os"

	"tarry/cluster/backup"
	"tarry/fsm"
	"tarry/fsm/check"
	"tarry/fsm/view"
)

// Verified is what a verification of a backup has found.
type Verified struct {
	Digest string // of the state, as tarry cluster verify prints it for the same index
	Counts backup.Counts
}

// Verify reads a whole backup: all checksums, then every record of the state, which it
// unpacks below tempDir for that, and checks that they are consistent. It removes what it
// unpacked. An empty tempDir is the system's.
func Verify(ctx context.Context, from backup.State, tempDir string, progress Progress) (v Verified, err error) {
	if err := checkFormat(&from.Header); err != nil {
		return Verified{}, err
	}
	dir, err := os.MkdirTemp(tempDir, "tarry-verify-")
	if err != nil {
		return Verified{}, fmt.Errorf("make a directory to unpack the backup in: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := new(stores)
	if s.machine, err = fsm.Open(dir, fsm.Options{OnFatal: s.fail}); err != nil {
		return Verified{}, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := load(ctx, s.machine, from, dir, progress.Read); err != nil {
		return Verified{}, err
	}
	if v.Counts, err = checkState(ctx, s.machine, &from.Header, progress.Checked); err != nil {
		return Verified{}, err
	}
	err = reading(ctx, s.machine, func(whole *view.View) (err error) {
		v.Digest, err = check.Digest(whole, progress.Hashed)
		return err
	})
	return v, err
}

// Progress tells how far a long step is. Its functions may be nil.
type Progress struct {
	Read    func(bytes int64)    // of the state, from the backup
	Checked func(records uint64) // of the state, then
	Hashed  func(records uint64) // of the state, at last, by Verify
}

// reading runs f on a view of a state, and ends it when ctx ends.
func reading(ctx context.Context, m *fsm.Machine, f func(*view.View) error) (err error) {
	v := m.View()
	defer func() { err = errors.Join(err, v.Close()) }()
	defer context.AfterFunc(ctx, func() { _ = v.Close() })() // it is closed again, with its error
	err = f(v)
	if errors.Is(err, view.ErrEnded) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// checkState reads every record of a state, whether they agree, and compares the state with the
// header of its backup.
func checkState(ctx context.Context, m *fsm.Machine, h *backup.Header, checked func(records uint64)) (c backup.Counts, err error) {
	err = reading(ctx, m, func(v *view.View) error { return check.Records(v, checked) })
	switch {
	case ctx.Err() != nil:
		return c, ctx.Err()
	case err != nil:
		return c, fmt.Errorf("%w: %w", backup.ErrDamaged, err)
	}
	if c, err = countsOf(m); err != nil {
		return c, err
	}
	if c != h.Counts || m.ClusterID() != h.ClusterID {
		return c, fmt.Errorf("%w: its header counts %+v in cluster %s, its state has %+v in cluster %s", backup.ErrDamaged, h.Counts, h.ClusterID, c, m.ClusterID())
	}
	return c, nil
}
