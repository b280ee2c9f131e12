package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"tarry/bench/localcluster"
)

// spread is the time over which the pending jobs fall due, from a day on.
const (
	pendingDelay  = 24 * 3600
	pendingSpread = 30 * 24 * 3600
)

// runPending fills one node with delayed jobs and measures its memory, its disk,
// and how long a restart takes after SIGTERM and after kill -9.
func runPending(ctx context.Context, c Config) (*Result, error) {
	n := c.Cluster.Nodes()[0]
	begin := time.Now()
	if err := fill(ctx, c); err != nil {
		return nil, err
	}
	res := &Result{Scenario: c.Scenario, Seconds: time.Since(begin).Seconds(), Jobs: int64(c.Jobs)}
	res.Rate = float64(c.Jobs) / res.Seconds
	c.Logger.Info("all jobs are added", "jobs", c.Jobs, "seconds", int(res.Seconds))
	var err error
	if res.RSSBytes, err = n.RSS(); err != nil {
		return nil, err
	}
	stop := func() error {
		ctx, cancel := context.WithTimeout(ctx, roundLimit)
		defer cancel()
		return n.Terminate(ctx)
	}
	if res.RestartSeconds, err = restart(ctx, c, n, stop); err != nil {
		return nil, err
	}
	if res.RSSRestarted, err = n.RSS(); err != nil {
		return nil, err
	}
	if res.KillSeconds, err = restart(ctx, c, n, n.Kill); err != nil {
		return nil, err
	}
	res.DiskBytes, err = diskUse(n.DataDir())
	return res, err
}

// fill adds the jobs in batches, with due instants spread evenly.
func fill(ctx context.Context, c Config) error {
	var next atomic.Int64
	var workers sync.WaitGroup
	failed := make(chan error, c.Connections)
	for i := range c.Connections {
		workers.Go(func() {
			w := newConn(ctx, c.Addrs[0], c.access())
			defer w.close()
			jobs := newJobText(c, i)
			var request []byte
			for {
				from := int(next.Add(int64(c.Batch))) - c.Batch
				if from >= c.Jobs {
					return
				}
				delay := pendingDelay + float64(from)/float64(c.Jobs)*pendingSpread
				request = jobs.appendBatch(request[:0], min(c.Batch, c.Jobs-from), delay)
				if _, err := w.call("POST", "/v1/jobs/batch", request, roundLimit); err != nil {
					failed <- fmt.Errorf("add jobs from number %d: %w", from, err)
					return
				}
			}
		})
	}
	workers.Wait()
	close(failed)
	return <-failed
}

// restart stops the node, starts it and gives the seconds from start to ready.
func restart(ctx context.Context, c Config, n *localcluster.Node, stop func() error) (float64, error) {
	if err := stop(); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := n.Start(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*roundLimit)
	defer cancel()
	err := c.Cluster.WaitReady(ctx, n)
	return time.Since(begin).Seconds(), err
}

// diskUse sums the sizes of the files below dir. Files that vanish meanwhile,
// because a store tidies up, do not count.
func diskUse(dir string) (int64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				total += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return total, err
}
