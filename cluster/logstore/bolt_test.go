package logstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

var (
	boltFlips = flag.Int("bolt.flips", 200, "bits to flip in raft-boltdb's file, one at a time")
	boltSeed  = flag.Uint64("bolt.seed", 1, "for their places")
)

// boltDir returns a directory with a raft-boltdb log that was used for long: its tree has
// branches, free pages with older entries, and entries over several pages.
func boltDir(t *testing.T) (dir string, first, last uint64) {
	dir = t.TempDir()
	c := &contract{t: t, kind: RaftBoltDB, dir: dir}
	c.open()
	c.append(1, 600, 1, 100)
	require.NoError(t, c.Log.DeleteRange(1, 200))
	c.append(601, 610, 1, 9000)
	require.NoError(t, c.Log.DeleteRange(605, 610))
	for i := uint64(605); i <= 640; i++ {
		c.append(i, i, 2, 100)
	}
	require.NoError(t, c.Close())
	return dir, 201, 640
}

// boltEntries opens a log and returns all its entries, or the failure that stopped it.
func boltEntries(dir string) (first, last uint64, found [][]byte, err error) {
	s, err := Open(dir, Options{Kind: RaftBoltDB, Fatal: func(error) {}})
	if err != nil {
		return 0, 0, nil, err
	}
	defer s.Close()
	first, _ = s.Log.FirstIndex()
	last, _ = s.Log.LastIndex()
	for i := first; i <= last && i > 0; i++ {
		var e raft.Log
		if err := s.Log.GetLog(i, &e); err != nil {
			return 0, 0, nil, err
		}
		found = append(found, binary.BigEndian.AppendUint64(e.Data, e.Term))
	}
	return first, last, found, nil
}

// usedBytes returns the size of the part of the file that is in use.
func usedBytes(t *testing.T, data []byte) int64 {
	meta, err := newestMeta(bytes.NewReader(data))
	require.NoError(t, err)
	return int64(meta.high) * meta.pageSize
}

// A bit that flips while the node does not run is detected or changes nothing. bbolt
// alone would lose the last transaction, read outside its mapping, or return wrong
// entries.
func TestAFlippedBitInBoltLosesNothing(t *testing.T) {
	dir, first, last := boltDir(t)
	wantFirst, wantLast, want, err := boltEntries(dir)
	require.NoError(t, err)
	require.Equal(t, []uint64{first, last}, []uint64{wantFirst, wantLast})
	path := filepath.Join(dir, boltFile)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	mark, err := os.ReadFile(filepath.Join(dir, markFile))
	require.NoError(t, err)
	used := usedBytes(t, data)
	data = data[:used] // the rest is zeros
	rng := rand.New(rand.NewPCG(*boltSeed, 0))
	places := []int64{16, 16 + 16, 16 + 48, 16 + 56, 4096 + 16, 4096 + 32, 4096 + 64, 4096 + 72} // in the two roots
	for range *boltFlips {
		at := rng.Int64N(used)
		if rng.IntN(2) == 0 {
			at = at/4096*4096 + rng.Int64N(300) // where a page tells what is in it
		}
		places = append(places, at)
	}
	refused := 0
	for _, at := range places {
		bit := byte(1) << rng.IntN(8)
		bad := slices.Clone(data)
		bad[at] ^= bit
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, markFile), mark, 0o600))
		gotFirst, gotLast, got, err := boltEntries(dir)
		if err != nil {
			require.True(t, errors.Is(err, ErrDamaged) || errors.Is(err, ErrFileDamaged), "byte %d, bit %x: %v", at, bit, err)
			refused++
			continue
		}
		require.Equal(t, []uint64{first, last}, []uint64{gotFirst, gotLast}, "byte %d, bit %x", at, bit)
		require.Equal(t, want, got, "byte %d, bit %x", at, bit)
	}
	t.Logf("%d of %d flips were refused; the others changed nothing", refused, len(places))
	require.NotZero(t, refused)
}

// bbolt silently uses the older meta page if the newer one is damaged, and so loses the
// last transaction.
func TestALostTransactionIsDetected(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, path string, before []byte){
		"the newest meta page is damaged": func(t *testing.T, path string, _ []byte) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			meta, err := newestMeta(bytes.NewReader(data))
			require.NoError(t, err)
			data[int64(meta.txid%2)*meta.pageSize+boltPageHeader+20] ^= 1
			require.NoError(t, os.WriteFile(path, data, 0o600))
		},
		"an older copy": func(t *testing.T, path string, before []byte) {
			require.NoError(t, os.WriteFile(path, before, 0o600))
		},
		"none":  func(t *testing.T, path string, _ []byte) { require.NoError(t, os.Remove(path)) },
		"empty": func(t *testing.T, path string, _ []byte) { require.NoError(t, os.Truncate(path, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			c := &contract{t: t, kind: RaftBoltDB, dir: t.TempDir()}
			c.open()
			c.append(1, 50, 1, 100)
			path := filepath.Join(c.dir, boltFile)
			before, err := os.ReadFile(path)
			require.NoError(t, err)
			c.append(51, 51, 1, 100)
			require.NoError(t, c.Close())
			damage(t, path, before)
			_, _, _, err = boltEntries(c.dir)
			require.ErrorIs(t, err, ErrFileDamaged)
		})
	}
}

func TestADamagedWatermark(t *testing.T) {
	c := &contract{t: t, kind: RaftBoltDB, dir: t.TempDir()}
	c.open()
	c.append(1, 50, 1, 100)
	require.NoError(t, c.Close())
	path := filepath.Join(c.dir, markFile)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	write := func(data []byte) error {
		require.NoError(t, os.WriteFile(path, data, 0o600))
		_, last, _, err := boltEntries(c.dir)
		if err == nil {
			require.EqualValues(t, 50, last)
		}
		return err
	}
	torn := slices.Clone(good)
	torn[3] ^= 1
	require.NoError(t, write(torn), "one slot, as a torn write leaves it")
	torn[slotSpacing+3] ^= 1
	require.ErrorIs(t, write(torn), ErrFileDamaged)
	require.ErrorIs(t, write(nil), ErrFileDamaged)
	require.NoError(t, os.Remove(path))
	_, _, _, err = boltEntries(c.dir)
	require.ErrorIs(t, err, ErrFileDamaged)
}

// With a watermark from before the first transaction the file would be created again.
func TestAWatermarkWithoutATransaction(t *testing.T) {
	c := &contract{t: t, kind: RaftBoltDB, dir: t.TempDir()}
	c.open()
	require.NoError(t, c.Stable.SetUint64([]byte(keyTerm), 1))
	c.append(1, 5, 1, 10)
	require.NoError(t, c.Close())
	require.NoError(t, os.Remove(filepath.Join(c.dir, markFile)))
	d, err := openDisk(c.dir, RaftBoltDB)
	require.NoError(t, err)
	mark, err := openWatermark(d.Records, c.dir, markFile, 2, false)
	require.NoError(t, err)
	require.NoError(t, mark.close())
	_, _, _, err = boltEntries(c.dir)
	require.ErrorIs(t, err, ErrFileDamaged)
	require.FileExists(t, filepath.Join(c.dir, boltFile))
}

// The process may end at any moment while the file is created.
func TestAFileThatWasNotCreatedCompletely(t *testing.T) {
	for name, data := range map[string][]byte{
		"empty": nil, "zeros": make([]byte, 16<<10), "one page": make([]byte, 4096), "garbage": bytes.Repeat([]byte("x"), 9000),
	} {
		t.Run(name, func(t *testing.T) {
			c := &contract{t: t, kind: RaftBoltDB, dir: t.TempDir()}
			d, err := openDisk(c.dir, RaftBoltDB)
			require.NoError(t, err)
			mark, err := openWatermark(d.Records, c.dir, markFile, 2, false)
			require.NoError(t, err)
			require.NoError(t, mark.close())
			require.NoError(t, os.WriteFile(filepath.Join(c.dir, boltFile), data, 0o600))
			c.open()
			c.append(1, 5, 1, 10)
			c.reopen()
			c.holds(1, 5)
			require.NoError(t, c.Close())
		})
	}
}

// A page that is damaged while the node runs makes bbolt panic or the mapping fault. It
// stops the stores with an error and does not crash the process.
func TestADamagedPageStopsARunningLog(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, path string){
		"garbage": func(t *testing.T, path string) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = f.WriteAt(bytes.Repeat([]byte{0xA5}, int(usedBytes(t, data))-2*4096), 2*4096)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		},
		"the file is cut": func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 2*4096)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, first, last := boltDir(t)
			var reported []error
			s, err := Open(dir, Options{Kind: RaftBoltDB, Fatal: func(err error) { reported = append(reported, err) }})
			require.NoError(t, err)
			damage(t, filepath.Join(dir, boltFile))
			var failed error
			for i := first; i <= last && failed == nil; i++ {
				failed = s.Log.GetLog(i, new(raft.Log))
			}
			require.Error(t, failed)
			require.Equal(t, []error{failed}, reported)
			require.Error(t, s.Log.StoreLogs(entries(last+1, last+1, 10)))
			_ = s.Close() // it may not hang
		})
	}
}
