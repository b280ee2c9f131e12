package cluster

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func TestAReadWaitsForCommittedEntries(t *testing.T) {
	types := map[uint64]raft.LogType{
		5: raft.LogCommand, 6: raft.LogConfiguration, 7: raft.LogCommand, 8: raft.LogNoop, 9: raft.LogBarrier,
	}
	for name, c := range map[string]struct {
		applied, committed uint64
		waits              bool
	}{
		"all is applied":                         {9, 9, false},
		"more is applied":                        {9, 7, false},
		"a command is missing":                   {5, 7, true},
		"a configuration is missing":             {5, 6, true},
		"what never reaches the state":           {7, 9, false},
		"a command before what never reaches it": {6, 9, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var applied atomic.Uint64
				applied.Store(c.applied)
				p := &progress{applied: applied.Load, entry: func(index uint64, out *raft.Log) error {
					out.Type = types[index]
					return nil
				}}
				done := make(chan error, 1)
				go func() { done <- p.reach(context.Background(), c.committed) }()
				synctest.Wait()
				require.Equal(t, c.waits, len(done) == 0)
				p.advanced() // nothing new: the read continues to wait
				synctest.Wait()
				require.Equal(t, c.waits, len(done) == 0)
				applied.Store(7)
				p.advanced()
				require.NoError(t, <-done)
			})
		})
	}
}

func TestAReadEndsWithItsContext(t *testing.T) {
	p := &progress{applied: func() uint64 { return 1 }, entry: func(uint64, *raft.Log) error { return nil }}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, p.reach(ctx, 2), context.Canceled)
}
