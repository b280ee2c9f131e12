package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"tarry/bench/localcluster"
	"tarry/internal/sleep"
)

// betweenRounds is how long a cluster may recover between two rounds.
const betweenRounds = 2 * time.Second

// roundLimit bounds each wait of a round.
const roundLimit = 60 * time.Second

// endLeader ends a leader and returns how long writes were away. write starts clients
// that write at the other nodes.
type endLeader func(ctx context.Context, leader *localcluster.Node, write func() *writers) (time.Duration, error)

// runRounds ends the leader again and again, by end, and collects how long writes were
// away each time.
func runRounds(ctx context.Context, c Config, end endLeader) (*Result, error) {
	var times Histogram
	begin := time.Now()
	for round := range c.Rounds {
		took, err := runRound(ctx, c, round, end)
		if err != nil {
			return nil, fmt.Errorf("round %d: %w", round+1, err)
		}
		c.Logger.Info("the cluster accepts writes again", "round", round+1, "after", took.Round(time.Millisecond))
		times.Record(took)
	}
	return &Result{Scenario: c.Scenario, Seconds: time.Since(begin).Seconds(), Jobs: int64(c.Rounds), Latency: summarize(&times)}, nil
}

func runRound(ctx context.Context, c Config, round int, end endLeader) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	if !sleep.For(ctx, betweenRounds) {
		return 0, ctx.Err()
	}
	leader, err := c.Cluster.Leader(ctx)
	if err != nil {
		return 0, err
	}
	took, err := end(ctx, leader, func() *writers { return startWriters(ctx, c, leader, round) })
	if err != nil {
		return 0, err
	}
	if err := leader.Start(); err != nil {
		return 0, err
	}
	return took, c.Cluster.WaitReady(ctx, leader)
}

// killOnce is kill -9 of the leader; it measures the time to the first
// acknowledged write that was sent to a surviving node after the kill.
func killOnce(ctx context.Context, leader *localcluster.Node, write func() *writers) (time.Duration, error) {
	if err := leader.Kill(); err != nil {
		return 0, err
	}
	begin := time.Now()
	w := write()
	defer w.stop()
	err := w.next(ctx)
	return time.Since(begin), err
}

// terminateOnce is SIGTERM of the leader. Until it hands over it goes on serving,
// so the first write afterwards says little: clients of the other nodes write one
// after the other until it is gone, and the longest stretch without an
// acknowledgement counts.
func terminateOnce(ctx context.Context, leader *localcluster.Node, write func() *writers) (time.Duration, error) {
	w := write()
	defer w.stop()
	if err := w.next(ctx); err != nil { // they write already
		return 0, err
	}
	w.forget()
	if err := leader.Terminate(ctx); err != nil {
		return 0, err
	}
	if err := w.next(ctx); err != nil {
		return 0, err
	}
	return w.worst(), nil
}

// writers add jobs at every node but one, and note when they are acknowledged.
type writers struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	acks   chan struct{} // one token after each acknowledgement

	mu   sync.Mutex
	last time.Time
	gap  time.Duration
}

func startWriters(ctx context.Context, c Config, but *localcluster.Node, round int) *writers {
	ctx, cancel := context.WithCancel(ctx)
	w := &writers{cancel: cancel, acks: make(chan struct{}, 1)}
	for i, n := range c.Cluster.Nodes() {
		if n == but {
			continue
		}
		w.done.Go(func() {
			conn := newConn(ctx, n.HTTP, c.access())
			defer conn.close()
			jobs := newJobText(c, round*len(c.Cluster.Nodes())+i)
			for ctx.Err() == nil {
				if _, err := conn.call("POST", "/v1/jobs", jobs.append(nil, farDelay), callLimit); err == nil {
					w.acknowledged()
				} else if !sleep.For(ctx, failurePause) {
					return
				}
			}
		})
	}
	return w
}

func (w *writers) acknowledged() {
	w.mu.Lock()
	now := time.Now()
	w.gap, w.last = max(w.gap, now.Sub(w.last)), now
	w.mu.Unlock()
	select {
	case w.acks <- struct{}{}:
	default:
	}
}

// next waits for an acknowledgement from now on.
func (w *writers) next(ctx context.Context) error {
	select {
	case <-w.acks: // of some time before
	default:
	}
	select {
	case <-w.acks:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no write was acknowledged: %w", ctx.Err())
	}
}

// forget begins the measurement anew.
func (w *writers) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gap, w.last = 0, time.Now()
}

func (w *writers) worst() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gap
}

func (w *writers) stop() {
	w.cancel()
	w.done.Wait()
}
