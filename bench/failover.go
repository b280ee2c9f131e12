package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"tarry/bench/localcluster"
)

// settle lets a cluster find its feet between two rounds.
const settle = 2 * time.Second

// roundLimit bounds each wait of a round.
const roundLimit = 60 * time.Second

// runFailover kills the leader with kill -9, again and again, and measures the
// time to the first acknowledged write that was sent to a surviving node after
// the kill.
func runFailover(ctx context.Context, c Config) (*Result, error) {
	var times Histogram
	begin := time.Now()
	for round := range c.Rounds {
		took, err := killOnce(ctx, c, round)
		if err != nil {
			return nil, fmt.Errorf("round %d: %w", round+1, err)
		}
		c.Logger.Info("the cluster accepts writes again", "round", round+1, "after", took.Round(time.Millisecond))
		times.Record(took)
	}
	return &Result{Scenario: c.Scenario, Seconds: time.Since(begin).Seconds(), Jobs: int64(c.Rounds), Latency: summarize(&times)}, nil
}

func killOnce(ctx context.Context, c Config, round int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	if !rest(ctx, settle) {
		return 0, ctx.Err()
	}
	leader, err := c.Cluster.Leader(ctx)
	if err != nil {
		return 0, err
	}
	if err := leader.Kill(); err != nil {
		return 0, err
	}
	took, err := firstWrite(ctx, c, leader, round)
	if err != nil {
		return 0, err
	}
	if err := leader.Start(); err != nil {
		return 0, err
	}
	return took, c.Cluster.WaitReady(ctx, leader)
}

// firstWrite tries to add a job at every surviving node at once until one of
// them acknowledges.
func firstWrite(ctx context.Context, c Config, dead *localcluster.Node, round int) (time.Duration, error) {
	begin := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := make(chan time.Duration, len(c.Cluster.Nodes()))
	var tries sync.WaitGroup
	for i, n := range c.Cluster.Nodes() {
		if n == dead {
			continue
		}
		tries.Go(func() {
			w := newConn(ctx, n.HTTP)
			defer w.close()
			jobs := newJobText(c, round*len(c.Cluster.Nodes())+i)
			for {
				if _, err := w.call("POST", "/v1/jobs", jobs.append(nil, farDelay), callLimit); err == nil {
					first <- time.Since(begin)
					return
				}
				if !rest(ctx, failurePause) {
					return
				}
			}
		})
	}
	defer tries.Wait()
	defer cancel()
	select {
	case took := <-first:
		return took, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("no write was acknowledged: %w", ctx.Err())
	}
}
