package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"tarry/internal/sleep"
)

// callLimit is how long one call may take before it counts as failed.
const callLimit = 15 * time.Second

// Phases of a run.
const (
	warming int32 = iota
	measuring
	over
)

// run is what the workers of one measurement share.
type run struct {
	config Config
	phase  atomic.Int32
}

// worker is one goroutine of the load with its connection and counts.
type worker struct {
	*conn
	run    *run
	number int

	latency  Histogram
	lateness Histogram
	jobs     int64
	failures int64
	last     error
}

// turn is one round of a closed loop; it reports how many jobs it handled.
type turn func() (jobs int, err error)

// failurePause keeps a worker from spinning on a node that refuses.
const failurePause = 10 * time.Millisecond

// loop takes turns until ctx ends. What ends within the measured time counts.
func (w *worker) loop(ctx context.Context, t turn) {
	defer w.close()
	for ctx.Err() == nil {
		start := time.Now()
		jobs, err := t()
		if w.run.phase.Load() != measuring {
			continue
		}
		if err != nil {
			w.failures++
			w.last = err
			sleep.For(ctx, failurePause)
			continue
		}
		if jobs > 0 {
			w.latency.Record(time.Since(start))
			w.jobs += int64(jobs)
		}
	}
}

// measure runs workers, each in its own goroutine, through warm-up and the
// measured time, and sums up. start begins the work of worker i and returns when
// ctx ends.
func measure(ctx context.Context, c Config, workers int, start func(ctx context.Context, w *worker)) (*Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{config: c}
	var all []*worker
	var running sync.WaitGroup
	for i := range workers {
		w := &worker{conn: newConn(ctx, c.Addrs[i%len(c.Addrs)], c.access()), run: r, number: i}
		all = append(all, w)
		running.Go(func() { start(ctx, w) })
	}
	sleep.For(ctx, c.Warmup)
	cpu := startCPU(c.Cluster)
	begin := time.Now()
	r.phase.Store(measuring)
	sleep.For(ctx, c.Duration)
	r.phase.Store(over)
	elapsed := time.Since(begin)
	used, err := cpu.stop()
	interrupted := ctx.Err()
	cancel()
	running.Wait()
	if err = errors.Join(err, interrupted); err != nil {
		return nil, err
	}
	return sum(c, all, elapsed, used)
}

func sum(c Config, all []*worker, elapsed time.Duration, used cpuUse) (*Result, error) {
	var latency, lateness Histogram
	res := &Result{Scenario: c.Scenario, Protocol: c.Protocol, Seconds: elapsed.Seconds(), GeneratorCPU: used.self, NodeCPU: used.nodes}
	var last error
	for _, w := range all {
		latency.Merge(&w.latency)
		lateness.Merge(&w.lateness)
		res.Jobs += w.jobs
		res.Failures += w.failures
		if w.last != nil {
			last = fmt.Errorf("node %s: %w", w.addr, w.last)
		}
	}
	if res.Jobs == 0 {
		return nil, fmt.Errorf("no job went through in %v, %d calls failed: %w", elapsed.Round(time.Second), res.Failures, last)
	}
	if last != nil {
		c.Logger.Warn("some calls failed", "calls", res.Failures, "last", last)
	}
	res.Rate = float64(res.Jobs) / elapsed.Seconds()
	res.Latency, res.latencies = summarize(&latency), latency
	if lateness.Count() > 0 {
		s := summarize(&lateness)
		res.Lateness = &s
	}
	return res, nil
}
