package store

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// Pebble assumes that the manifest ends where it cannot be read, as after a crash. A store
// then lacks what was flushed. What the last complete Flush made durable must be there, for
// the Raft log need not have it.
func TestAStoreWhoseManifestIsDamagedIsRefusedOrWhole(t *testing.T) {
	const phases, keys = 3, 10 // of 50 KiB: some memtables each
	mem := vfs.NewCrashableMem()
	require.NoError(t, mem.MkdirAll(testDir, 0o750))
	o := Options{MemTableBytes: 256 << 10, OnFatal: func(err error) { t.Error(err) }}
	o.FS = mem
	db, err := open(o)
	require.NoError(t, err)
	for phase := range phases {
		for i := range keys {
			require.NoError(t, db.Set([]byte{byte(phase), byte(i)}, []byte(strings.Repeat("x", 50<<10)), pebble.NoSync))
		}
		if phase < phases-1 {
			require.NoError(t, db.Flush())
		}
	}
	left := mem.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, db.Close())

	names, err := left.List(testDir)
	require.NoError(t, err)
	manifests := slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, "MANIFEST-") })
	file := path.Join(testDir, slices.Max(manifests))
	whole := read(t, left, file)
	refused, opened := 0, 0
	try := func(what string, at int, bad []byte) {
		o := o
		o.FS = left.CrashClone(vfs.CrashCloneCfg{})
		write(t, o.FS, file, bad)
		db, err := open(o)
		if err != nil {
			refused++
			return
		}
		opened++
		defer func() { require.NoError(t, db.Close()) }()
		for phase := range phases - 1 { // the last one was not flushed
			for i := range keys {
				_, done, err := db.Get([]byte{byte(phase), byte(i)})
				require.NoError(t, err, "%s at %d of %d: key %d of phase %d", what, at, len(whole), i, phase)
				require.NoError(t, done.Close())
			}
		}
	}
	for at := range whole {
		try("cut", at, whole[:at])
		bad := slices.Clone(whole)
		bad[at] ^= 1 << (at % 8)
		try("a bit", at, bad)
	}
	try("nothing", 0, whole)
	require.Positive(t, opened)
	t.Logf("%d refused, %d opened and whole", refused, opened)
}
