package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"tarry/bench/localcluster"
)

// settings are how long and how often it is measured.
type settings struct {
	Rounds   int           `json:"rounds"`
	Duration time.Duration `json:"duration_ns"` // of a measurement, without its warm-up
	Warmup   time.Duration `json:"warmup_ns"`
	Pending  int           `json:"pending_jobs"` // of the memory figures; 0 leaves them out
}

// group is measured on one instance, one after the other.
type group struct {
	name string
	list []measurement
}

// connectionCounts are those of the single puts.
var connectionCounts = []int{1, 4, 16, 64, 256}

const (
	manyConnections  = 64
	batchConnections = 16
	consumers        = 32
	producers        = 32
	lowRate          = 50
	highRate         = 1000
)

func (s settings) groups() []group {
	var puts []measurement
	for _, n := range connectionCounts {
		puts = append(puts, measurement{workload: "put", connections: n, warmup: s.Warmup, duration: s.Duration})
	}
	late := func(workload string, consumers, rate int) measurement {
		return measurement{workload: workload, connections: consumers, producers: producers, rate: rate,
			warmup: nearDelay + s.Warmup, duration: 2 * s.Duration}
	}
	return []group{
		{"put", puts},
		{"work", []measurement{
			{workload: "cycle", connections: manyConnections, warmup: s.Warmup, duration: s.Duration},
			{workload: "batch", connections: batchConnections, warmup: s.Warmup, duration: s.Duration},
		}},
		{"late", []measurement{
			late("late", consumers, lowRate), late("late", consumers, highRate), late("one-consumer", 1, highRate),
		}},
	}
}

// runner measures systems and collects points.
type runner struct {
	settings
	systems []system
	only    string // workload; "" is all
	dir     string
	log     *slog.Logger
	points  []point
}

// run measures every round in a new order. What fails becomes a point with an error.
func (r *runner) run(ctx context.Context) error {
	type arm struct {
		system
		group
	}
	for round := range r.Rounds {
		var arms []arm
		for _, s := range r.systems {
			for _, g := range r.groups() {
				arms = append(arms, arm{s, g})
			}
		}
		rand.Shuffle(len(arms), func(i, j int) { arms[i], arms[j] = arms[j], arms[i] })
		for _, a := range arms {
			if err := r.measure(ctx, a.system, a.group, round); err != nil {
				return err
			}
		}
	}
	if r.Pending == 0 || r.only != "" && r.only != "pending" {
		return nil
	}
	for _, s := range r.systems {
		if s.key == tarryTubes {
			continue // the same nodes as over HTTP
		}
		if err := r.fill(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// with starts a system, lets use work with it and removes it.
func (r *runner) with(ctx context.Context, s system, lazy bool, use func(in instance, dir string) error) (err error) {
	dir, err := os.MkdirTemp(r.dir, "peers-")
	if err != nil {
		return fmt.Errorf("make a directory for %s: %w", s.key, err)
	}
	defer os.RemoveAll(dir)
	in, err := s.start(ctx, dir, lazy)
	if in != nil {
		defer func() { err = errors.Join(err, in.stop()) }()
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", s.key, err)
	}
	return use(in, dir)
}

func (r *runner) measure(ctx context.Context, s system, g group, round int) error {
	list := g.list
	if r.only != "" {
		list = nil
		for _, m := range g.list {
			if m.workload == r.only {
				list = append(list, m)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	// Later measurements find the jobs of the earlier ones, so they take turns.
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	err := r.with(ctx, s, false, func(in instance, _ string) error {
		for _, m := range list {
			p, err := m.run(ctx, in)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				p.Error = err.Error()
			}
			r.add(p, s, round)
		}
		return nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		r.add(point{Workload: g.name, Error: err.Error()}, s, round)
	}
	return nil
}

func (r *runner) add(p point, s system, round int) {
	p.System, p.Round = s.key, round+1
	r.points = append(r.points, p)
	if p.Error != "" {
		r.log.Error("not measured", "system", p.System, "workload", p.Workload, "error", p.Error)
		return
	}
	r.log.Info("measured", "round", p.Round, "system", p.System, "workload", p.Workload, "connections", p.Connections, "due_per_second", p.DuePerSec,
		"jobs_per_second", int(p.Rate), "p50_ms", p.Latency.P50, "late_p50_ms", p.Lateness.P50, "late_p99_ms", p.Lateness.P99,
		"server_us_per_job", int(p.ServerCPU), "failed", p.Failures, "jobs", p.Jobs, "rss_mib", p.RSS>>20, "disk_mib", p.Disk>>20)
}

const (
	fillConnections = 8
	fillDelay       = 24 * time.Hour
	fillSpread      = 30 * 24 * time.Hour
	settle          = 2 * time.Second // until memory is read
)

// fill adds pending jobs in steps and reads memory and disk after each.
func (r *runner) fill(ctx context.Context, s system) error {
	err := r.with(ctx, s, true, func(in instance, dir string) error {
		if err := in.topic(ctx, "pending"); err != nil {
			return err
		}
		done := 0
		for _, n := range []int{0, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000} {
			if n > r.Pending {
				break
			}
			if err := r.addJobs(ctx, in, done, n); err != nil {
				return err
			}
			done = n
			p := point{Workload: "pending", Jobs: int64(n)}
			if err := readSizes(ctx, in, dir, &p); err != nil {
				return err
			}
			r.add(p, s, 0)
		}
		return nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		r.add(point{Workload: "pending", Error: err.Error()}, s, 0)
	}
	return nil
}

func (r *runner) addJobs(ctx context.Context, in instance, from, to int) error {
	var next atomic.Int64
	next.Store(int64(from))
	body := strings.Repeat("x", bodySize)
	failed := make(chan error, fillConnections)
	var running sync.WaitGroup
	for i := range fillConnections {
		running.Go(func() { failed <- fillOne(ctx, in, i, body, &next, to, r.Pending) })
	}
	running.Wait()
	close(failed)
	var errs []error
	for err := range failed {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// fillOne adds batches until next is at to. The due times of all are spread evenly.
func fillOne(ctx context.Context, in instance, i int, body string, next *atomic.Int64, to, all int) error {
	q, err := in.open(ctx, "pending", i)
	if err != nil {
		return err
	}
	defer q.Close()
	begin := time.Now().Add(fillDelay)
	for ctx.Err() == nil {
		first := int(next.Add(batchSize)) - batchSize
		if first >= to {
			return nil
		}
		bodies := make([]string, min(batchSize, to-first))
		for j := range bodies {
			bodies[j] = body
		}
		err := q.PutMany(bodies, func(j int) time.Time {
			return begin.Add(time.Duration(float64(fillSpread) * float64(first+j) / float64(all)))
		})
		if err != nil {
			return fmt.Errorf("add jobs from number %d: %w", first, err)
		}
	}
	return ctx.Err()
}

func readSizes(ctx context.Context, in instance, dir string, p *point) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(settle):
	}
	for _, pid := range in.pids() {
		used, err := localcluster.RSS(pid)
		if err != nil {
			return err
		}
		p.RSS += used
	}
	return filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				// What it occupies: logs are made in advance, and some with holes.
				if s, ok := info.Sys().(*syscall.Stat_t); ok {
					p.Disk += s.Blocks * 512
				}
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a store tidies up
		}
		return err
	})
}
