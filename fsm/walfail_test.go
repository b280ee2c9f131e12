package fsm

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// failingLogs lets one write to a write-ahead log fail when it is asked to.
type failingLogs struct {
	vfs.FS
	next *atomic.Bool
}

func (f failingLogs) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	if err == nil && strings.HasSuffix(name, ".log") {
		file = failingLog{file, f.next}
	}
	return file, err
}

func (f failingLogs) Unwrap() vfs.FS { return f.FS }

type failingLog struct {
	vfs.File
	next *atomic.Bool
}

var errLogWrite = errors.New("the disk does not take it")

func (f failingLog) Write(p []byte) (int, error) {
	if f.next.CompareAndSwap(true, false) {
		return 0, errLogWrite
	}
	return f.File.Write(p)
}

// Pebble remembers a failed write of its log until somebody waits for a sync, and
// drops what comes behind it meanwhile.
func TestAFailedWriteOfTheStoresLogEndsTheProcess(t *testing.T) {
	fatal := make(chan error, 100)
	next := new(atomic.Bool)
	fsys := failingLogs{vfs.NewMem(), next}
	require.NoError(t, fsys.MkdirAll(rigDir, 0o750))
	s, err := openStore(rigDir, Options{FS: fsys, OnFatal: func(err error) { fatal <- err }}.withDefaults())
	require.NoError(t, err)
	next.Store(true)
	// Pebble writes its log in the background, and one of the calls alone may not
	// wake it.
	require.Eventually(t, func() bool {
		if err := s.db.Set([]byte("a"), []byte("b"), pebble.NoSync); err != nil {
			t.Error(err)
		}
		return len(fatal) > 0
	}, time.Minute, time.Millisecond)
	require.ErrorIs(t, <-fatal, errLogWrite)
	require.ErrorIs(t, s.close(), errLogWrite)
}
