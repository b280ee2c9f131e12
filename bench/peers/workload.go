package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"tarry/bench"
	"tarry/bench/localcluster"
	"tarry/internal/sleep"
)

// phases of a measurement.
const (
	warming int32 = iota
	measuring
	over
)

// load is one measurement that runs: what its workers share.
type load struct {
	body   string
	phase  atomic.Int32
	begin  time.Time
	paced  atomic.Int64 // instants given out
	gap    time.Duration
	failed atomic.Value // the last error, for people
}

// hand is one worker with its connection and counts.
type hand struct {
	queue
	*load
	latency, lateness bench.Histogram
	jobs, failures    int64
}

// turn does one round of a closed loop and reports how many jobs it handled.
type turn func() (int, error)

const (
	bodySize     = 200
	farDelay     = time.Hour // of puts that only add
	nearDelay    = time.Second
	batchSize    = 100
	dueDigits    = 19 // of the due time in nanoseconds that the body of a paced job begins with
	failurePause = 10 * time.Millisecond
)

// loop takes turns until ctx ends. What ends within the measured time counts.
func (h *hand) loop(ctx context.Context, t turn) {
	for ctx.Err() == nil {
		start := time.Now()
		jobs, err := t()
		if h.phase.Load() != measuring {
			continue
		}
		if err != nil {
			h.failures++
			h.failed.Store(err.Error())
			sleep.For(ctx, failurePause)
			continue
		}
		if jobs > 0 {
			h.latency.Record(time.Since(start))
			h.jobs += int64(jobs)
		}
	}
}

// put adds jobs that are due in an hour, one a call.
func put(ctx context.Context, h *hand) {
	h.loop(ctx, func() (int, error) { return 1, h.Put(h.body, time.Now().Add(farDelay)) })
}

// batch adds them by the batch, or in a pipeline.
func batch(ctx context.Context, h *hand) {
	bodies := make([]string, batchSize)
	for i := range bodies {
		bodies[i] = h.body
	}
	h.loop(ctx, func() (int, error) {
		due := time.Now().Add(farDelay)
		return batchSize, h.PutMany(bodies, func(int) time.Time { return due })
	})
}

// cycle adds a job that is due now, takes one and deletes it.
func cycle(ctx context.Context, h *hand) {
	h.loop(ctx, func() (int, error) {
		if err := h.Put(h.body, time.Time{}); err != nil {
			return 0, fmt.Errorf("put: %w", err)
		}
		for ctx.Err() == nil {
			body, err := h.Reserve()
			if err != nil {
				return 0, fmt.Errorf("reserve: %w", err)
			}
			if body != "" {
				break
			}
		}
		if err := h.Delete(); err != nil {
			return 0, fmt.Errorf("delete: %w", err)
		}
		return 1, nil
	})
}

// produce adds a job due in a second at each instant of the pace. The body begins with
// the due time in nanoseconds, a whole number of milliseconds, as some systems have
// no finer ones.
func produce(ctx context.Context, h *hand) {
	for {
		at := h.begin.Add(time.Duration(h.paced.Add(1)) * h.gap)
		if !sleep.For(ctx, time.Until(at)) {
			return
		}
		due := time.Now().Add(nearDelay + time.Millisecond - 1).Truncate(time.Millisecond)
		head := fmt.Sprintf("%0*d", dueDigits, due.UnixNano())
		if err := h.Put(head+h.body[len(head):], due); err != nil && h.phase.Load() == measuring {
			h.failures++
			h.failed.Store("put: " + err.Error())
			sleep.For(ctx, failurePause)
		}
	}
}

// consume takes one job at a time and deletes it. The lateness ends when the consumer has
// the job. A system that deletes and takes in one call does.
func consume(ctx context.Context, h *hand) {
	both, _ := h.queue.(worker)
	held := false
	h.loop(ctx, func() (int, error) {
		body, err := "", error(nil)
		if held && both != nil {
			body, err = both.DeleteAndReserve()
		} else {
			body, err = h.Reserve()
		}
		held = false
		if err != nil || body == "" {
			return 0, err
		}
		now := time.Now()
		nanos, err := strconv.ParseInt(body[:dueDigits], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("due time of a job: %w", err)
		}
		if h.phase.Load() == measuring {
			h.lateness.Record(now.Sub(time.Unix(0, nanos)))
		}
		if held = true; both == nil {
			err = h.Delete()
		}
		return 1, err
	})
}

// measurement is one point before it is measured.
type measurement struct {
	workload    string
	connections int // that consume, or do all
	producers   int
	rate        int // jobs due a second
	warmup      time.Duration
	duration    time.Duration
}

func (m measurement) topic() string {
	return fmt.Sprintf("%s-%d-%d", m.workload, m.connections, m.rate)
}

// run opens the connections, loads the system and sums up.
func (m measurement) run(ctx context.Context, in instance) (point, error) {
	p := point{Workload: m.workload, Connections: m.connections, DuePerSec: m.rate}
	if err := in.topic(ctx, m.topic()); err != nil {
		return p, fmt.Errorf("make topic %s: %w", m.topic(), err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &load{body: strings.Repeat("x", bodySize)}
	var hands []*hand
	defer func() {
		for _, h := range hands {
			h.Close()
		}
	}()
	for i := range m.connections + m.producers {
		q, err := in.open(ctx, m.topic(), i)
		if err != nil {
			return p, fmt.Errorf("open connection %d: %w", i, err)
		}
		hands = append(hands, &hand{queue: q, load: l})
	}
	l.begin = time.Now()
	if m.rate > 0 {
		l.gap = time.Second / time.Duration(m.rate)
	}
	var running sync.WaitGroup
	for i, h := range hands {
		work := m.work(i)
		running.Go(func() { work(ctx, h) })
	}
	sleep.For(ctx, m.warmup)
	used, err1 := startMeter(in.pids())
	l.phase.Store(measuring)
	sleep.For(ctx, m.duration)
	l.phase.Store(over)
	err := errors.Join(err1, used.stop(&p), ctx.Err())
	cancel()
	running.Wait()
	if err != nil {
		return p, err
	}
	return p, m.sum(&p, l, hands, used.elapsed)
}

func (m measurement) work(i int) func(context.Context, *hand) {
	switch {
	case m.workload == "put":
		return put
	case m.workload == "batch":
		return batch
	case m.workload == "cycle":
		return cycle
	case i < m.connections:
		return consume
	}
	return produce
}

func (m measurement) sum(p *point, l *load, hands []*hand, elapsed time.Duration) error {
	var latency, lateness bench.Histogram
	for _, h := range hands {
		latency.Merge(&h.latency)
		lateness.Merge(&h.lateness)
		p.Jobs += h.jobs
		p.Failures += h.failures
	}
	if p.Jobs == 0 {
		return fmt.Errorf("no job went through in %v, %d calls failed, the last with: %v", m.duration, p.Failures, l.failed.Load())
	}
	p.Rate = float64(p.Jobs) / elapsed.Seconds()
	p.ServerCPU = p.ServerCores * 1e6 / p.Rate
	if m.rate == 0 {
		p.Latency = summarize(&latency)
	}
	p.Lateness = summarize(&lateness)
	return nil
}

// meter measures processor time, of the servers and of this process.
type meter struct {
	pids          []int
	begin         time.Time
	elapsed       time.Duration
	servers, self time.Duration
}

func startMeter(pids []int) (*meter, error) {
	m := &meter{pids: pids, begin: time.Now()}
	err := m.read(&m.servers, &m.self)
	return m, err
}

func (m *meter) read(servers, self *time.Duration) error {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return fmt.Errorf("read own CPU time: %w", err)
	}
	*self = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	*servers = 0
	for _, pid := range m.pids {
		used, err := localcluster.CPU(pid)
		if err != nil {
			return err
		}
		*servers += used
	}
	return nil
}

func (m *meter) stop(p *point) error {
	var servers, self time.Duration
	err := m.read(&servers, &self)
	m.elapsed = time.Since(m.begin)
	p.ServerCores = (servers - m.servers).Seconds() / m.elapsed.Seconds()
	p.LoadCores = (self - m.self).Seconds() / m.elapsed.Seconds()
	return err
}
