package cluster

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cluster/datadir"
	"tarry/cluster/statemachine"
	"tarry/job"
)

// aliveShard is the liveness of a shard that responds, for tests that break one part of it.
func aliveShard(t *testing.T) *liveness {
	var work sync.WaitGroup
	t.Cleanup(work.Wait)
	return &liveness{
		raft:       func() error { return errors.New("not the leader") },
		installing: func() bool { return false },
		committed:  func() uint64 { return 7 },
		applied:    func() uint64 { return 7 },
		reached:    func(uint64) (bool, error) { return true, nil },
		state:      func() error { return nil },
		run:        func(f func()) bool { work.Go(f); return true },
	}
}

func TestAShardThatRespondsIsAlive(t *testing.T) {
	l := aliveShard(t)
	for range 3 {
		require.NoError(t, l.check(t.Context()))
	}
}

// The race detector finds a goroutine that begins while the node waits for the last one.
func TestAProbeBesideAStopIsWaitedForOrDoesNotBegin(t *testing.T) {
	c := newTestCluster(t, 1)
	c.leader()
	n := c.nodes[0]
	var probes sync.WaitGroup
	stopped := make(chan struct{})
	for range 4 {
		probes.Go(func() {
			for {
				select {
				case <-stopped:
					return
				default:
					_ = n.raftSilent(&n.group)
					_ = n.shard.liveness.check(t.Context())
				}
			}
		})
	}
	c.stop(0)
	close(stopped)
	probes.Wait()
	require.ErrorContains(t, n.shard.liveness.check(t.Context()), "the node stops")
	require.False(t, n.shard.spawn(func() { t.Error("it ran") }))
}

func TestAStateThatCannotBeReadIsNoResponse(t *testing.T) {
	l := aliveShard(t)
	l.state = func() error { return errors.New("closed") }
	require.ErrorContains(t, l.check(t.Context()), "closed")
}

func TestALoopThatHangsIsFoundAndAskedOnlyOnce(t *testing.T) {
	l := aliveShard(t)
	asked, release := 0, make(chan struct{})
	var installs atomic.Bool
	l.installing = installs.Load
	l.raft = func() error { asked++; <-release; return nil }
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		require.ErrorIs(t, l.check(ended), context.Canceled)
	}
	installs.Store(true)
	require.NoError(t, l.check(ended), "the loop is busy with the state of a leader")
	installs.Store(false)
	close(release)
	require.NoError(t, l.check(t.Context()), "it responds again")
	require.LessOrEqual(t, asked, 2)
}

func TestAStateThatDoesNotAdvanceIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		applied [3]uint64 // at each of three checks
		reached bool
		err     error
		stands  bool
	}{
		"it stands":                       {[3]uint64{5, 5, 5}, false, nil, true},
		"it advances":                     {[3]uint64{4, 5, 6}, false, nil, false},
		"all is applied":                  {[3]uint64{7, 7, 7}, true, nil, false},
		"the entry is no longer in a log": {[3]uint64{5, 5, 5}, false, errors.New("not found"), false},
	} {
		t.Run(name, func(t *testing.T) {
			l := aliveShard(t)
			i := -1
			l.state = func() error { i++; return nil }
			l.applied = func() uint64 { return c.applied[i] }
			l.reached = func(uint64) (bool, error) { return c.reached, c.err }
			require.NoError(t, l.check(t.Context()), "at the first look nothing is known")
			for range 2 {
				if err := l.check(t.Context()); c.stands {
					require.ErrorContains(t, err, "still at entry 5")
				} else {
					require.NoError(t, err)
				}
			}
		})
	}
}

func TestNodesOfAClusterRespond(t *testing.T) {
	c := newTestCluster(t, 3)
	c.leader()
	for _, n := range c.nodes {
		require.NoError(t, n.Responds(t.Context()))
	}
	c.stop(0)
	c.stop(1)
	require.NoError(t, c.nodes[2].Responds(t.Context()), "a node without a majority is alive")
}

func TestErrorsSayWhetherARestartHelps(t *testing.T) {
	unusable := datadir.WithRejoin(errors.New("damaged"), "d")
	for _, c := range []struct {
		err           error
		person, again bool
	}{
		{unusable, true, false},
		{errors.Join(&job.VersionError{Version: 2, Runs: job.Versions{Min: 1, Max: 1}}), true, false},
		{errors.Join(statemachine.ErrRestart), false, true},
		{errTransferNeverEnds, false, true},
		{errors.New("address in use"), false, false},
	} {
		require.Equal(t, c.person, NeedsPerson(c.err), c.err)
		require.Equal(t, c.again, RestartFixes(c.err), c.err)
	}
}
