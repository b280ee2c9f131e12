package diskspace

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// measureEvery is the time between two measurements. What is written in that time must
// fit between the mark and a full disk.
const measureEvery = time.Second

// State is the result of the last measurement, in bytes. Free is what this process may
// use.
type State struct {
	Low               bool
	Free, Total, Mark uint64
}

// String is for logs and messages.
func (s State) String() string {
	return fmt.Sprintf("%d MiB of %d MiB are free, the low-water mark is %d MiB", s.Free>>20, s.Total>>20, s.Mark>>20)
}

// next returns the state after a measurement. Low ends a quarter above the mark.
func (s State) next(free, total uint64, m Mark) State {
	mark := m.of(total)
	limit := mark
	if s.Low {
		limit += mark / 4
	}
	return State{Low: free < limit, Free: free, Total: total, Mark: mark}
}

// Free returns the bytes of the disk below dir that this process may use. The error wraps
// errors.ErrUnsupported on an operating system that is not asked for them.
func Free(dir string) (uint64, error) {
	free, _, err := measure(dir)
	return free, err
}

// Options says what is watched.
type Options struct {
	Dir    string
	Mark   Mark
	Logger *slog.Logger
	// Changed is called when Low has changed, on the goroutine of Run. It must
	// not block. May be nil.
	Changed func(State)
	// Measure returns the free and the total bytes of the disk below Dir; nil: the
	// operating system does.
	Measure func(dir string) (free, total uint64, err error)
}

// Watch measures one disk. Create one with New, then call Run.
type Watch struct {
	o      Options
	now    atomic.Pointer[State]
	failed bool // the last measurement failed, and that was logged

	ballasted bool // the ballast exists, or could not be created
}

// New measures the disk, so that State is correct from the start. On a full disk it
// removes the ballast.
func New(o Options) *Watch {
	if o.Measure == nil {
		o.Measure = measure
	}
	if o.Changed == nil {
		o.Changed = func(State) {}
	}
	w := &Watch{o: o}
	w.now.Store(&State{})
	w.measure()
	if w.dropBallast() {
		w.measure()
	}
	w.ensureBallast()
	return w
}

// State returns the result of the last measurement; all zero before the first.
func (w *Watch) State() State { return *w.now.Load() }

// Run measures the disk every second until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	tick := time.NewTicker(measureEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if w.measure() {
				w.o.Changed(w.State())
			}
			w.ensureBallast()
		case <-ctx.Done():
			return
		}
	}
}

// measure measures the disk and reports whether Low has changed. If that fails the state
// stays.
func (w *Watch) measure() (changed bool) {
	free, total, err := w.o.Measure(w.o.Dir)
	if err != nil {
		if !w.failed {
			w.o.Logger.Warn("cannot measure the disk's free space; adds are accepted until it is full", "dir", w.o.Dir, "error", err)
		}
		w.failed = true
		return false
	}
	w.failed = false
	old := w.State()
	now := old.next(free, total, w.o.Mark)
	w.now.Store(&now)
	switch {
	case now.Low && !old.Low:
		w.o.Logger.Warn("the disk is low", "dir", w.o.Dir, "free_bytes", now.Free, "low_water_bytes", now.Mark)
	case old.Low && !now.Low:
		w.o.Logger.Info("the disk has enough free space again", "dir", w.o.Dir, "free_bytes", now.Free, "low_water_bytes", now.Mark)
	}
	return now.Low != old.Low
}
