//go:build linux

package disk_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/chaos/disk"
)

// TestPowerLossKeepsWhatWasSyncedAndNothingElse has the least that POSIX promises
// in its rows: what is done, and what is there after the power came back.
func TestPowerLossKeepsWhatWasSyncedAndNothingElse(t *testing.T) {
	old := func(t *testing.T, dir string) string { // a file that is durable
		put(t, filepath.Join(dir, "old"), "old")
		syncDir(t, dir)
		return filepath.Join(dir, "old")
	}
	for _, test := range []struct {
		name string
		do   func(t *testing.T, d *disk.Disk, dir string)
		want map[string]string // path -> content, "-": not there
	}{
		{"file and directory synced", func(t *testing.T, _ *disk.Disk, dir string) { old(t, dir) },
			map[string]string{"old": "old"}},
		{"directory not synced", func(t *testing.T, _ *disk.Disk, dir string) { put(t, filepath.Join(dir, "f"), "x") },
			map[string]string{"f": "-"}},
		{"file not synced", func(t *testing.T, _ *disk.Disk, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o600))
			syncDir(t, dir)
		}, map[string]string{"f": ""}},
		{"overwritten", func(t *testing.T, _ *disk.Disk, dir string) {
			require.NoError(t, os.WriteFile(old(t, dir), []byte("new and longer"), 0o600))
		}, map[string]string{"old": "old"}},
		{"cut", func(t *testing.T, _ *disk.Disk, dir string) { require.NoError(t, os.Truncate(old(t, dir), 1)) },
			map[string]string{"old": "old"}},
		{"removed", func(t *testing.T, _ *disk.Disk, dir string) { require.NoError(t, os.Remove(old(t, dir))) },
			map[string]string{"old": "old"}},
		{"removed and synced", func(t *testing.T, _ *disk.Disk, dir string) {
			require.NoError(t, os.Remove(old(t, dir)))
			syncDir(t, dir)
		}, map[string]string{"old": "-"}},
		{"replaced by a rename", func(t *testing.T, _ *disk.Disk, dir string) {
			put(t, filepath.Join(dir, "tmp"), "new")
			require.NoError(t, os.Rename(filepath.Join(dir, "tmp"), old(t, dir)))
		}, map[string]string{"old": "old", "tmp": "new"}},
		{"replaced and synced", func(t *testing.T, _ *disk.Disk, dir string) {
			put(t, filepath.Join(dir, "tmp"), "new")
			require.NoError(t, os.Rename(filepath.Join(dir, "tmp"), old(t, dir)))
			syncDir(t, dir)
		}, map[string]string{"old": "new", "tmp": "-"}},
		{"linked, and the link written through", func(t *testing.T, _ *disk.Disk, dir string) {
			require.NoError(t, os.Link(old(t, dir), filepath.Join(dir, "link")))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "link"), []byte("xyz"), 0o600))
		}, map[string]string{"old": "old", "link": "-"}},
		{"a tree removed", func(t *testing.T, _ *disk.Disk, dir string) {
			sub := filepath.Join(dir, "sub", "sub")
			require.NoError(t, os.MkdirAll(sub, 0o750))
			put(t, filepath.Join(sub, "f"), "deep")
			for _, p := range []string{sub, filepath.Dir(sub), dir} {
				syncDir(t, p)
			}
			require.NoError(t, os.RemoveAll(filepath.Dir(sub)))
		}, map[string]string{"sub/sub/f": "deep"}},
		{"a directory renamed and filled", func(t *testing.T, _ *disk.Disk, dir string) {
			tmp := filepath.Join(dir, "gen.tmp")
			require.NoError(t, os.Mkdir(tmp, 0o750))
			put(t, filepath.Join(tmp, "f"), "first")
			syncDir(t, tmp)
			syncDir(t, dir)
			require.NoError(t, os.Rename(tmp, filepath.Join(dir, "gen")))
			put(t, filepath.Join(dir, "gen", "g"), "second")
			syncDir(t, filepath.Join(dir, "gen"))
		}, map[string]string{"gen/f": "-", "gen.tmp/f": "first", "gen.tmp/g": "second"}},
		{"a sync failed and the next did not", func(t *testing.T, d *disk.Disk, dir string) {
			f, err := os.OpenFile(old(t, dir), os.O_WRONLY, 0)
			require.NoError(t, err)
			write(t, f, "new")
			d.Inject(disk.Faults{SyncErrors: 1})
			require.ErrorIs(t, f.Sync(), syscall.EIO)
			require.NoError(t, f.Sync())
			require.NoError(t, f.Close())
		}, map[string]string{"old": "old"}},
		{"written again after a failed sync", func(t *testing.T, d *disk.Disk, dir string) {
			f, err := os.OpenFile(old(t, dir), os.O_WRONLY, 0)
			require.NoError(t, err)
			write(t, f, "new")
			d.Inject(disk.Faults{SyncErrors: 1})
			require.ErrorIs(t, f.Sync(), syscall.EIO)
			_, err = f.WriteAt([]byte("NEW"), 0)
			require.NoError(t, err)
			require.NoError(t, f.Sync())
			require.NoError(t, f.Close())
		}, map[string]string{"old": "NEW"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := mount(t)
			test.do(t, d, d.Path())
			require.NoError(t, d.PowerLoss(1, 0))
			for path, want := range test.want {
				require.Equal(t, want, content(t, filepath.Join(d.Path(), path)), path)
				require.Equal(t, want, content(t, filepath.Join(d.Backing(), path)), path)
			}
		})
	}
}

// fill leaves unsynced pages and names behind.
func fill(t *testing.T, dir string) {
	f, err := os.Create(filepath.Join(dir, "pages"))
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	syncDir(t, dir)
	write(t, f, strings.Repeat("x", 64*4096))
	require.NoError(t, f.Close())
	for _, name := range strings.Split("abcdefghij", "") {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
}

// survivors counts the pages and names of fill that are there.
func survivors(t *testing.T, d *disk.Disk) (picture string, pages, names int) {
	data := content(t, filepath.Join(d.Backing(), "pages"))
	entries, err := os.ReadDir(d.Backing())
	require.NoError(t, err)
	for i := 0; i < len(data); i += 4096 {
		picture += string(data[i : i+1])
		pages += strings.Count(data[i:i+1], "x")
	}
	for _, e := range entries {
		picture += " " + e.Name()
	}
	return picture, pages, len(entries) - 1
}

func TestTheSeedOfAPowerLossDecidesWhatSurvives(t *testing.T) {
	lose := func(seed int64, survive float64) (string, int, int) {
		d := mount(t)
		fill(t, d.Path())
		require.NoError(t, d.PowerLoss(seed, survive))
		return survivors(t, d)
	}
	_, pages, names := lose(1, 1)
	require.Equal(t, 64, pages)
	require.Equal(t, 10, names)
	pictures := make(map[string]bool)
	for seed := range int64(6) {
		first, _, _ := lose(seed, 0.5)
		again, _, _ := lose(seed, 0.5)
		require.Equal(t, first, again, "seed %d", seed)
		pictures[first] = true
	}
	require.Greater(t, len(pictures), 1, "seeds differ")
}

func TestPowerLossWaitsForNobodyToHaveFilesOpen(t *testing.T) {
	d := mount(t)
	f, err := os.Create(filepath.Join(d.Path(), "f"))
	require.NoError(t, err)
	require.ErrorContains(t, d.PowerLoss(1, 0), "still open")
	require.NoError(t, f.Close())
	require.NoError(t, d.PowerLoss(1, 0))
}
