package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"tarry/bench/localcluster"
	"tarry/chaos/fault"
	"tarry/chaos/history"
	"tarry/internal/sleep"
)

// injector follows a schedule and keeps account of it.
type injector struct {
	cluster  *localcluster.Cluster
	schedule *schedule
	recorder *history.Recorder
	log      *slog.Logger
	dir      string
	prepare  func(*fault.Env) // fills in what the environment offers
	claimed  *fault.ClaimedNodes

	mu         sync.Mutex
	counts     map[string]int // injections by fault
	figures    map[string]int // what faults counted
	skipped    int            // injections without a victim
	violations []history.Violation
	quiet      []history.Window // between the heal of one step and the next step
	skews      []history.Skew
	stalls     []history.Window
	healed     int64 // when the last fault of this step was lifted, in the recorder's microseconds
	broken     context.CancelCauseFunc
}

// errViolated ends a run early: what happens after a broken promise says little.
var errViolated = errors.New("a fault found a broken promise")

// run injects until ctx ends and leaves everything healed. Its error means that
// the harness failed.
func (in *injector) run(ctx context.Context) error {
	in.quiet = []history.Window{{From: in.recorder.Now()}}
	ctx, in.broken = context.WithCancelCause(ctx)
	defer in.broken(nil)
	for ctx.Err() == nil {
		st, ok := in.schedule.next()
		if !ok {
			<-ctx.Done()
			return nil
		}
		sleep.For(ctx, st.pause)
		in.awaitWrite(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := in.inject(ctx, st); err != nil {
			return err
		}
	}
	return nil
}

// writePatience is how long the schedule waits for writes to resume. What is
// longer is a broken I6 in any case.
const writePatience = 60 * time.Second

// awaitWrite waits until a write was acknowledged since the last heal, so that
// the time to it is measured and not cut off by the next fault.
func (in *injector) awaitWrite(ctx context.Context) {
	in.mu.Lock()
	healed := in.quiet[len(in.quiet)-1].From
	in.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, writePatience)
	defer cancel()
	for in.recorder.LastWrite() <= healed && ctx.Err() == nil {
		sleep.For(ctx, 10*time.Millisecond)
	}
}

// inject runs the faults of one step side by side.
func (in *injector) inject(ctx context.Context, st step) error {
	in.disturb()
	defer in.calm()
	errs := make([]error, len(st.faults))
	var running sync.WaitGroup
	for i, f := range st.faults {
		e, err := in.env(st, i, f)
		if err != nil {
			return err
		}
		running.Go(func() {
			defer func() { errs[i] = errors.Join(errs[i], os.RemoveAll(e.Dir)) }()
			defer in.claimed.Release(e)
			errs[i] = in.one(ctx, f, e)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

func (in *injector) one(ctx context.Context, f fault.Fault, e *fault.Env) error {
	err := f.Run(ctx, e)
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case errors.Is(err, fault.ErrNoVictim):
		in.skipped++
		return nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		in.skipped++ // the run was over first
		return nil
	case err != nil:
		return fmt.Errorf("fault %s: %w", f.Name, err)
	}
	in.counts[f.Name]++
	return nil
}

// disturb ends the quiet window before a step.
func (in *injector) disturb() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.quiet[len(in.quiet)-1].To = in.recorder.Now()
	in.healed = 0
}

// heal notes that a fault was lifted now; of several the last counts.
func (in *injector) heal() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.healed = in.recorder.Now()
}

// skew notes that clocks are apart from now to the end of the step.
func (in *injector) skew(by time.Duration) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.skews = append(in.skews, history.Skew{Window: history.Window{From: in.recorder.Now()}, By: by})
}

// stall notes that a node stands still between now and the end of the step.
func (in *injector) stall() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.stalls = append(in.stalls, history.Window{From: in.recorder.Now()})
}

// calm begins the quiet window after a step.
func (in *injector) calm() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.healed == 0 {
		in.healed = in.recorder.Now()
	}
	for i := range in.skews {
		if in.skews[i].To == 0 {
			in.skews[i].To = in.recorder.Now()
		}
	}
	for i := range in.stalls {
		if in.stalls[i].To == 0 {
			in.stalls[i].To = in.recorder.Now()
		}
	}
	in.quiet = append(in.quiet, history.Window{From: in.healed})
}

// Faults last from tenths of a second to some seconds; one in five is long.
const (
	minHold  = 300 * time.Millisecond
	midHold  = 3 * time.Second
	longHold = 10 * time.Second
)

func (in *injector) env(st step, n int, f fault.Fault) (*fault.Env, error) {
	dir := filepath.Join(in.dir, fmt.Sprintf("fault-%d-%d", st.number, n))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make a directory for a fault: %w", err)
	}
	e := &fault.Env{
		Cluster: in.cluster, Rand: in.schedule.random(st, n), Claimed: in.claimed, Dir: dir,
		Log:     in.log.With("step", st.number, "fault", f.Name),
		Violate: func(invariant, format string, args ...any) { in.violate(f, invariant, format, args...) },
		Healed:  in.heal,
		Skew:    in.skew,
		Stall:   in.stall,
		Count: func(figure string, n int) {
			in.mu.Lock()
			defer in.mu.Unlock()
			in.figures[figure] += n
		},
	}
	e.Hold = func() time.Duration {
		if e.Rand.IntN(5) == 0 {
			return e.Between(midHold, longHold)
		}
		return e.Between(minHold, midHold)
	}
	if in.prepare != nil {
		in.prepare(e)
	}
	return e, nil
}

func (in *injector) violate(f fault.Fault, invariant, format string, args ...any) {
	v := history.Violation{Invariant: invariant, Message: f.Name + ": " + fmt.Sprintf(format, args...)}
	in.log.Error("broken promise", "violation", v.String())
	in.mu.Lock()
	defer in.mu.Unlock()
	in.violations = append(in.violations, v)
	in.broken(errViolated)
}
