package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/chaos/history"
	"tarry/chaos/workload"
	"tarry/internal/sleep"
)

// load is a workload that runs while a test breaks things.
type load struct {
	t      *testing.T
	config workload.Config
	from   int64
	skews  []history.Skew // see history.Options
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// clockBound is how far clocks may be apart: here all are one machine's, so it
// covers rounding to milliseconds and the drift of a wall clock under correction
// against the recorder's steady one.
const clockBound = 5 * time.Millisecond

// startLoad puts the nodes at addrs under load until judge is called.
func startLoad(t *testing.T, addrs []string) *load {
	ctx, cancel := context.WithCancel(context.Background())
	seed := uint64(time.Now().UnixNano())
	t.Logf("the clients' choices come from seed %d", seed)
	var nodes []workload.Node
	for _, addr := range addrs {
		nodes = append(nodes, workload.Node{HTTP: addr})
	}
	l := &load{t: t, stop: cancel, config: workload.Config{
		Nodes: func() []workload.Node { return nodes }, Recorder: history.NewRecorder(), Topics: []string{"mail", "bills", "thumbnails"},
		Producers: 4, Consumers: 6, Think: 10 * time.Millisecond, Seed: seed, Name: fmt.Sprintf("r%x", seed&0xffff),
	}}
	require.NoError(t, workload.Prepare(ctx, l.config))
	l.from = l.config.Recorder.Now()
	l.done.Go(func() { workload.Run(ctx, l.config) })
	t.Cleanup(l.halt)
	return l
}

func (l *load) halt() {
	l.stop()
	l.done.Wait()
}

// writes waits until a write that is sent from now on is acknowledged. It is I6: the nodes that are
// up at the call serve, whatever has happened before.
func (l *load) writes() {
	l.t.Helper()
	since := l.config.Recorder.Now()
	waitUntil(l.t, func() error {
		if l.config.Recorder.LastWrite() > since {
			return nil
		}
		return errors.New("no write is acknowledged")
	})
}

// judge ends the load once writes are served, drains the cluster, whose nodes should all be up, and
// checks the history.
func (l *load) judge() *history.Report {
	l.t.Helper()
	l.writes()
	to := l.config.Recorder.Now()
	l.halt()
	ctx, cancel := context.WithTimeout(l.t.Context(), 2*patience)
	defer cancel()
	require.NoError(l.t, workload.Drain(ctx, l.config))
	r := history.Check(l.config.Recorder.Ops(), history.Options{ClockBound: clockBound, From: l.from, To: to, Skews: l.skews})
	l.t.Logf("history: %v", r)
	require.True(l.t, r.OK(), "invariants are broken; the history's report is above")
	require.NotZero(l.t, r.Jobs, "a load without jobs proves nothing")
	return r
}

// wait lets the load run for a while; the time is part of the fault, not a wait
// for something to happen.
func (l *load) wait(d time.Duration) {
	sleep.For(l.t.Context(), d)
}
