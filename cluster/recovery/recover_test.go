package recovery

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/datadir"
	"tarry/fsm"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

const clockMS = 1_700_000_000_000

// newStores makes the directory of node n1, and calls f with its empty stores.
func newStores(t *testing.T, f func(s *stores, serverID string)) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "data")
	dir, err := datadir.Open(path, "n1", "")
	require.NoError(t, err)
	s, err := openStores(dir, true, false)
	require.NoError(t, err)
	f(s, dir.ServerID())
	require.NoError(t, s.close())
	require.NoError(t, dir.Close())
	return path
}

func entry(t *testing.T, index uint64, op *jobpb.Op) *raft.Log {
	t.Helper()
	data, err := oplog.AppendOp(oplog.AppendEntryHeader(nil, clockMS+int64(index)), op)
	require.NoError(t, err)
	return &raft.Log{Index: index, Term: 1, Type: raft.LogCommand, Data: data}
}

func addEntry(t *testing.T, index uint64) *raft.Log {
	t.Helper()
	return entry(t, index, &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Topic: "t", Id: fmt.Sprint("job-", index), TtrMs: 1000}}})
}

// lostNode makes a node of a cluster of three, with a log of which the first applied entries
// are in its state.
func lostNode(t *testing.T, applied, last uint64) (path string) {
	t.Helper()
	return newStores(t, func(s *stores, serverID string) {
		var voters raft.Configuration
		for i, id := range []string{serverID, "n2.x", "n3.x"} {
			voters.Servers = append(voters.Servers, raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(fmt.Sprint("127.0.0.1:", 7001+i))})
		}
		log := []*raft.Log{
			{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(voters)},
			entry(t, 2, &jobpb.Op{Kind: &jobpb.Op_SetCluster{SetCluster: &jobpb.SetCluster{ClusterId: "old"}}}),
		}
		for i := uint64(3); i <= last; i++ {
			log = append(log, addEntry(t, i))
		}
		require.NoError(t, s.log.Log.StoreLogs(log))
		require.NoError(t, setTerm(s.log.Stable, 1))
		s.applyTo(t, log[:applied])
	})
}

// applyTo applies entries.
func (s *stores) applyTo(t *testing.T, log []*raft.Log) {
	t.Helper()
	for _, e := range log {
		_, _, err := s.machine.Apply([]fsm.Entry{{Index: e.Index, Term: e.Term, Data: e.Data, Configuration: e.Type == raft.LogConfiguration}}, false)
		require.NoError(t, err)
	}
}

// endsAfter is a context that is cancelled when it was asked n times.
type endsAfter struct {
	context.Context
	n int
}

func (c *endsAfter) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

// startsIn opens a directory as a node does.
func startsIn(path string) error {
	d, err := datadir.Open(path, "n1", "")
	if err == nil {
		err = d.Close()
	}
	return err
}

// A recovery that was interrupted has applied entries that may never have been committed. No
// node of the old cluster may start with them.
func TestNoNodeStartsAfterAnInterruptedRecovery(t *testing.T) {
	const last = 3*recoverBatch + 10
	for ends := 0; ; ends++ {
		path := lostNode(t, 5, last)
		before, err := Inspect(path)
		require.NoError(t, err)
		require.EqualValues(t, 5, before.AppliedIndex)
		require.EqualValues(t, last, before.LastIndex)
		require.Equal(t, "old", before.ClusterID)
		require.False(t, before.Interrupted)

		done, err := Recover(&endsAfter{t.Context(), ends}, path)
		if err == nil {
			require.Greater(t, ends, 3, "it was interrupted between any two batches")
			require.NotEqual(t, "old", done.ClusterID)
			require.EqualValues(t, last-2, done.Counts.Jobs())
			require.NoError(t, startsIn(path))
			return
		}
		require.ErrorIs(t, err, context.Canceled)
		now, err := Inspect(path)
		require.NoError(t, err)
		if ends == 0 {
			require.Equal(t, before, now, "nothing has changed yet")
			require.NoError(t, startsIn(path))
		} else {
			require.True(t, now.Interrupted)
			require.ErrorContains(t, startsIn(path), "run the same tarry recover, with --as-only-voter or --peers, with this directory again, to its end")
		}
		again, err := Recover(t.Context(), path)
		require.NoError(t, err)
		require.EqualValues(t, last-2, again.Counts.Jobs())
		require.NoError(t, startsIn(path))
		now, err = Inspect(path)
		require.NoError(t, err)
		require.Equal(t, again.ClusterID, now.ClusterID)
		require.Equal(t, 1, now.Voters())
		require.False(t, now.Interrupted)
	}
}

func TestANodeOfNoClusterIsNotRecovered(t *testing.T) {
	path := newStores(t, func(*stores, string) {})
	_, err := Recover(t.Context(), path)
	require.ErrorContains(t, err, "never in a cluster")
	require.NoError(t, startsIn(path))
}

// A node that was stopped in peace has everything in its state. Its log still knows when the
// leader made the last entry, which is when the node last heard of one.
func TestTheLastEntryOfANodeThatHasAppliedAll(t *testing.T) {
	at := time.UnixMilli(clockMS).UTC()
	path := newStores(t, func(s *stores, serverID string) {
		voter := raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(serverID), Address: "127.0.0.1:7001"}}}
		log := []*raft.Log{
			{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(voter)},
			entry(t, 2, &jobpb.Op{Kind: &jobpb.Op_SetCluster{SetCluster: &jobpb.SetCluster{ClusterId: "old"}}}),
		}
		log[1].AppendedAt = at
		require.NoError(t, s.log.Log.StoreLogs(log))
		require.NoError(t, setTerm(s.log.Stable, 1))
		s.applyTo(t, log)
	})
	h, err := Inspect(path)
	require.NoError(t, err)
	require.EqualValues(t, 2, h.AppliedIndex)
	require.True(t, at.Equal(h.LastEntry), "%v", h.LastEntry)
}
