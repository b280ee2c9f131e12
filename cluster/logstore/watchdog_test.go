package logstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func TestHungWriteIsFatalButNotAbandoned(t *testing.T) {
	tests := map[string]struct {
		write func(*Stores) error
		want  string
	}{
		"log":          {func(s *Stores) error { return s.Log.StoreLog(&raft.Log{Index: 2}) }, "log: append has been in flight for over 10s"},
		"stable store": {func(s *Stores) error { return s.Stable.SetUint64([]byte("CurrentTerm"), 1) }, "stable store: set CurrentTerm has been"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reported := make(chan error, 2)
				b := new(broken)
				s := stop(b, Options{HungAfter: defaultHungAfter, Fatal: func(err error) { reported <- err }})
				b.hang = make(chan struct{})
				done := make(chan error, 1)
				go func() { done <- tt.write(s) }()

				time.Sleep(defaultHungAfter + wakeGrace - time.Millisecond) // virtual
				synctest.Wait()
				require.Empty(t, reported)
				time.Sleep(2 * time.Millisecond)
				synctest.Wait()
				require.Len(t, reported, 1)
				require.ErrorContains(t, <-reported, tt.want)
				require.Empty(t, done, "the write still goes on")

				close(b.hang)
				require.NoError(t, <-done)
			})
		})
	}
}

func TestQuickWritesLeaveNoTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stop(new(broken), Options{HungAfter: defaultHungAfter, Fatal: func(err error) { t.Errorf("fatal: %v", err) }})
		require.NoError(t, s.Stable.SetUint64([]byte("CurrentTerm"), 1))
		time.Sleep(10 * defaultHungAfter)
		synctest.Wait()
	})
}

func TestWriteThatEndsWhenTheProcessResumesIsNotHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(broken)
		s := stop(b, Options{HungAfter: defaultHungAfter, Fatal: func(err error) { t.Errorf("fatal: %v", err) }})
		b.hang = make(chan struct{})
		done := make(chan error, 1)
		go func() { done <- s.Log.StoreLog(&raft.Log{Index: 2}) }()
		time.Sleep(defaultHungAfter + wakeGrace/2)
		close(b.hang)
		require.NoError(t, <-done)
		time.Sleep(10 * wakeGrace)
	})
}
