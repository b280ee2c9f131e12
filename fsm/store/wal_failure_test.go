package store

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

// failingLogs fails one write to a write-ahead log, or one early sync of it, on request.
type failingLogs struct {
	vfs.FS
	next, nextSync *atomic.Bool
}

func (f failingLogs) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	if err == nil && strings.HasSuffix(name, ".log") {
		file = failingLog{file, f.next, f.nextSync}
	}
	return file, err
}

func (f failingLogs) Unwrap() vfs.FS { return f.FS }

type failingLog struct {
	vfs.File
	next, nextSync *atomic.Bool
}

var errLogWrite = errors.New("injected error")

func (f failingLog) Write(p []byte) (int, error) {
	if f.next.CompareAndSwap(true, false) {
		return 0, errLogWrite
	}
	return f.File.Write(p)
}

// Fd makes Pebble sync the file early, as it does only with real files.
func (f failingLog) Fd() uintptr { return 0 }

func (f failingLog) SyncTo(length int64) (bool, error) {
	if f.nextSync.CompareAndSwap(true, false) {
		return false, errLogWrite
	}
	return f.File.SyncTo(length)
}

// After a failed write of its log Pebble drops what follows until somebody waits for a
// sync. It syncs each part of a log early, as a part of a write.
func TestAFailedWriteOfTheStoresLogEndsTheProcess(t *testing.T) {
	for name, fail := range map[string]func(failingLogs){
		"a write":       func(f failingLogs) { f.next.Store(true) },
		"an early sync": func(f failingLogs) { f.nextSync.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			fatal := make(chan error, 10_000)
			fsys := failingLogs{vfs.NewMem(), new(atomic.Bool), new(atomic.Bool)}
			require.NoError(t, fsys.MkdirAll(testDir, 0o750))
			db, err := open(Options{FS: fsys, OnFatal: func(err error) { fatal <- err }})
			require.NoError(t, err)
			fail(fsys)
			// Pebble writes its log in the background, so one call alone may not wake it.
			// After the failure it panics at some later call.
			require.Eventually(t, func() bool {
				if len(fatal) > 0 {
					return true
				}
				if err := db.Set([]byte("a"), make([]byte, 10_000), pebble.NoSync); err != nil {
					t.Error(err)
				}
				return false
			}, time.Minute, time.Millisecond)
			require.ErrorIs(t, <-fatal, errLogWrite)
			require.ErrorIs(t, db.Close(), errLogWrite)
		})
	}
}
