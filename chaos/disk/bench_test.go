//go:build linux

package disk_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/chaos/disk"
)

// BenchmarkAppendAndSync measures the overhead of the disk: a write of 4 KiB and a sync, on
// the file system below and through the disk.
func BenchmarkAppendAndSync(b *testing.B) {
	if err := disk.Available(); err != nil {
		b.Skipf("NOT MEASURED on this machine: %v", err)
	}
	d, err := disk.Mount(b.TempDir())
	require.NoError(b, err)
	defer func() { require.NoError(b, d.Close()) }()
	for name, dir := range map[string]string{"below": d.Backing(), "through": d.Path()} {
		b.Run(name, func(b *testing.B) {
			f, err := os.Create(filepath.Join(dir, name))
			require.NoError(b, err)
			page := make([]byte, 4096)
			for b.Loop() {
				_, err := f.Write(page)
				require.NoError(b, err)
				require.NoError(b, f.Sync())
			}
			require.NoError(b, f.Close())
		})
	}
}
