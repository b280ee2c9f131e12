package cluster

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/cluster/logstream"
	"tarry/job"
)

// logReader takes a stream until it has so many entries.
type logReader struct {
	bytes.Buffer
	until  uint64 // an index
	cancel context.CancelFunc
	frames []logstream.Frame
}

func (r *logReader) Flush() error {
	frames := logstream.NewReader(bytes.NewReader(r.Bytes()))
	r.frames = nil
	for {
		f, err := frames.Next()
		if err != nil {
			return nil // the rest is to come
		}
		r.frames = append(r.frames, f)
		if f.Kind == logstream.Entry && f.Index >= r.until {
			r.cancel()
		}
	}
}

// readLog reads the entries after an index up to another.
func readLog(t *testing.T, n *Node, o job.LogOptions, until uint64) ([]logstream.Frame, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := &logReader{until: until, cancel: cancel}
	err := n.Log(ctx, r, o)
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return r.frames, err
}

// position is the last entry of a node's state, in the log.
func position(n *Node) job.LogOptions {
	a := n.shard.machine.Applied()
	return job.LogOptions{ClusterID: n.clusterID(), After: a.Index, Term: a.Term}
}

func TestTheLogIsSentWithoutAGap(t *testing.T) {
	t.Parallel()
	c := newTunedCluster(t, 1, func(int, *Config) {})
	n := c.nodes[c.leader()]
	do(t, n, add("a", "t", 0))
	from := position(n)
	for _, id := range []string{"b", "c", "d"} {
		do(t, n, add(id, "t", 0))
	}
	last := position(n).After
	frames, err := readLog(t, n, from, last)
	require.NoError(t, err)
	require.Equal(t, logstream.Seen, frames[0].Kind, "how far the node is comes first")
	next := from.After + 1
	for _, f := range frames {
		if f.Kind == logstream.Entry {
			require.Equal(t, next, f.Index)
			next++
		} else {
			require.GreaterOrEqual(t, f.Index, from.After)
		}
	}
	require.Greater(t, next, last)
}

func TestWhoMayNotFollowALog(t *testing.T) {
	t.Parallel()
	c := smallLogs(t)
	n := c.nodes[c.leader()]
	do(t, n, add("a", "t", 0))
	from := position(n)
	change := func(f func(*job.LogOptions)) job.LogOptions {
		o := from
		f(&o)
		return o
	}
	for code, o := range map[job.Code]job.LogOptions{
		job.CodeConflict:   change(func(o *job.LogOptions) { o.ClusterID = "another" }),
		job.CodeNotApplied: change(func(o *job.LogOptions) { o.After += 1000 }),
	} {
		_, err := readLog(t, n, o, 0)
		require.Equal(t, code, job.CodeOf(err), "%v", err)
	}
	_, err := readLog(t, n, change(func(o *job.LogOptions) { o.Term += 7 }), 0)
	require.ErrorContains(t, err, "same history")

	addLarge(t, n, 150)
	n.shard.sizeLog(new(trailing), time.Now())
	require.Greater(t, firstIndex(t, n), from.After)
	frames, err := readLog(t, n, from, 0)
	require.Equal(t, job.CodeLogTruncated, job.CodeOf(err), "%v", err)
	require.Empty(t, frames)
}

func TestANodeSendsItsLogToFewReaders(t *testing.T) {
	t.Parallel()
	c := newTunedCluster(t, 1, func(int, *Config) {})
	n := c.nodes[c.leader()]
	do(t, n, add("a", "t", 0))
	for range maxLogReaders {
		n.logReaders <- struct{}{}
	}
	_, err := readLog(t, n, position(n), 0)
	require.Equal(t, job.CodeOverloaded, job.CodeOf(err))
}

func TestAClusterThatIsNoStandbyIsNotPromoted(t *testing.T) {
	t.Parallel()
	c := newTunedCluster(t, 1, func(int, *Config) {})
	n := c.nodes[c.leader()]
	s, err := n.Standby(t.Context())
	require.NoError(t, err)
	require.Zero(t, s.Mode)
	_, err = n.PromoteStandby(t.Context(), true)
	require.Equal(t, job.CodeConflict, job.CodeOf(err))
}

// The entries do not say what became of a state that a backup has replaced.
func TestAStandbyDoesNotFollowAcrossAReplacedState(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1)
	c.awaitVersion()
	n := c.nodes[c.leader()]
	do(t, n, add("kept", "t", time.Hour))
	file := backupFrom(t, n)
	from := position(n)

	// A stream that is open ends, without an entry after the replacement.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	open := &logReader{until: 1 << 62, cancel: cancel}
	ended := make(chan error, 1)
	go func() { ended <- n.Log(ctx, open, from) }()
	done, err := n.Restore(t.Context(), bytes.NewReader(file), job.RestoreOptions{})
	require.NoError(t, err)
	do(t, n, add("new", "t", time.Hour))
	require.ErrorContains(t, <-ended, "a backup replaced the state")
	for _, f := range open.frames {
		require.Less(t, f.Index, done.Index)
	}
	_, err = readLog(t, n, from, 0)
	require.Equal(t, job.CodeConflict, job.CodeOf(err), "%v", err)
}
