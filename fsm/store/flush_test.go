package store

import (
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
)

// After a power failure a store has all that was written before the last Flush, and of what
// was written later some, without a gap.
func TestAFlushIsDurableAndWhatFollowsHasNoGaps(t *testing.T) {
	fsys := vfs.NewCrashableMem()
	o := options(t, fsys)
	d, err := OpenDir(testDir, o)
	require.NoError(t, err)
	db, err := d.Open(d.Live())
	require.NoError(t, err)
	flushed := 0
	for i := range 60 {
		require.NoError(t, db.Set([]byte{byte(i)}, []byte(strings.Repeat("x", 50<<10)), pebble.NoSync))
		if i%7 == 3 {
			require.NoError(t, db.Flush())
			flushed = i + 1
		}
		o := o
		o.FS = fsys.CrashClone(vfs.CrashCloneCfg{})
		d, err := OpenDir(testDir, o)
		require.NoError(t, err)
		after, err := d.Open(d.Live())
		require.NoError(t, err)
		there := 0
		for ; ; there++ {
			_, done, err := after.Get([]byte{byte(there)})
			if errors.Is(err, pebble.ErrNotFound) {
				break
			}
			require.NoError(t, err)
			require.NoError(t, done.Close())
		}
		require.GreaterOrEqual(t, there, flushed)
		for j := there; j <= i; j++ {
			_, _, err := after.Get([]byte{byte(j)})
			require.ErrorIs(t, err, pebble.ErrNotFound, "%d is there, and %d is not", j, there)
		}
		require.NoError(t, after.Close())
	}
	require.NoError(t, db.Close())
}

// Pebble repeats a failed flush for ever.
func TestAFlushThatFailsReturnsAndIsFatal(t *testing.T) {
	errTable := errors.New("injected error")
	tables := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && path.Ext(op.Path) == ".sst" {
			return errTable
		}
		return nil
	})
	fatal := make(chan error, 1)
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll(testDir, 0o750))
	db, err := open(Options{FS: errorfs.Wrap(mem, tables), OnFatal: func(err error) {
		select {
		case fatal <- err:
		default:
		}
	}})
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("a"), []byte("x"), pebble.NoSync))
	require.ErrorContains(t, db.Flush(), "flush the store: it has failed")
	require.ErrorIs(t, <-fatal, errTable)
	require.NoError(t, db.Close())
}
