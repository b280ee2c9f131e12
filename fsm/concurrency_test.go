package fsm

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tarry/fsm/check"
	"tarry/fsm/view"
	"tarry/job/jobpb"
)

// One goroutine applies and replaces the state while others call everything that may be
// called from any goroutine. For the race detector.
func TestReadersBesideApply(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	m, err := Open(rigDir, Options{FS: vfs.NewMem(), MemTableBytes: 256 << 10})
	require.NoError(t, err)
	var reached atomic.Uint64
	done := make(chan struct{})
	var wg sync.WaitGroup
	for _, ask := range questions(m, &reached) {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := ask(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	const entries = 300
	for i := range uint64(entries) {
		e := Entry{Index: i + 1, Term: 1, Data: encodeEntry(t, rigStart+20*int64(i), opRetain("t", 1),
			opAdd(&jobpb.Add{Topic: "t", DelayMs: int64(i % 5)}), opForget("n"), opRemove("n", "n"), opAdmit("n"), opAdvance(3), opReserve(1, "t"), opFinish(bySeq(i/2+1)))}
		_, _, err := m.Apply([]Entry{e}, i%2 == 0)
		require.NoError(t, err)
		reached.Store(i + 1)
		if i%100 == 99 {
			path := m.options.FS.PathJoin(rigDir, "moved", string(rune('a'+i/100)))
			require.NoError(t, m.options.FS.MkdirAll(m.options.FS.PathDir(path), 0o755))
			require.NoError(t, m.store.db.Checkpoint(path))
			marked := m.Applied()
			require.NoError(t, m.reopen(path))
			require.GreaterOrEqual(t, marked.Index, m.Applied().Index)
		}
	}
	close(done)
	wg.Wait()
	require.EqualValues(t, entries, m.Applied().Index)
	require.NoError(t, checkMemory(m))
	require.NoError(t, m.Close())
}

// questions are the calls that other goroutines repeat.
func questions(m *Machine, reached *atomic.Uint64) []func() error {
	return []func() error{
		func() error {
			v := m.View()
			if err := check.Records(v, nil); err != nil && !errors.Is(err, view.ErrEnded) {
				return err
			}
			return v.Close()
		},
		func() error {
			v := m.View()
			defer v.Close()
			a, err := v.Applied()
			if err != nil && !errors.Is(err, view.ErrEnded) {
				return err
			}
			// The state of a view was published or is about to be.
			_, _, err = v.JobBySeq(a.Index)
			if errors.Is(err, view.ErrEnded) {
				err = nil
			}
			return err
		},
		func() error {
			_, _, _, _ = m.NextDue(), m.ClusterID(), m.Forgotten("n"), m.TopicChanges()
			_, _ = m.RemovedNodes()["n"], m.Admission().GetMode()
			_, _ = m.Applied(), m.Metrics()
			return nil
		},
		func() error {
			i := reached.Load()
			return m.MarkDurable(i, 1, []byte("c"), i)
		},
	}
}
