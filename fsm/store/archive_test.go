package store

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

var testHeader = Header{Index: 7, Term: 2, Version: 1}

func anyHeader(Header) error { return nil }

// archiveOf makes an archive of a store with some records.
func archiveOf(t *testing.T) []byte {
	d, db := openLive(t, Options{FS: vfs.NewMem()})
	for i := range 20 {
		require.NoError(t, db.Set([]byte{byte(i)}, []byte(strings.Repeat("x", 100)), pebble.NoSync))
		if i == 10 {
			require.NoError(t, db.Flush())
		}
	}
	path := d.CheckpointPath()
	require.NoError(t, db.Checkpoint(path))
	a, err := OpenArchive(d.options.FS, path, testHeader)
	require.NoError(t, err)
	data, err := io.ReadAll(a)
	require.NoError(t, err)
	require.EqualValues(t, a.Size, len(data))
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	_, err = a.Read(make([]byte, 1))
	require.ErrorContains(t, err, "closed")
	require.ElementsMatch(t, []string{"CURRENT", "gen-000001"}, namesIn(t, d))
	require.NoError(t, db.Close())
	return data
}

func namesIn(t testing.TB, d *Dir) []string {
	names, err := d.options.FS.List(d.path)
	require.NoError(t, err)
	return names
}

// receive writes an archive in pieces of odd sizes.
func receive(t *testing.T, d *Dir, data []byte) (*Receiver, error) {
	r, err := d.Receive(anyHeader)
	require.NoError(t, err)
	for size := 1; len(data) > 0; size = size*3 + 1 {
		n, err := r.Write(data[:min(size, len(data))])
		if err != nil {
			return r, err
		}
		data = data[n:]
	}
	return r, r.Finish()
}

func TestAReceivedStateReplacesTheLiveOne(t *testing.T) {
	d, old := openLive(t, Options{FS: vfs.NewMem()})
	r, err := receive(t, d, archiveOf(t))
	require.NoError(t, err)
	require.Equal(t, testHeader, r.Header())
	records := 0
	require.NoError(t, r.Inspect(func(db *pebble.DB) error {
		i, err := db.NewIter(nil)
		for ok := i.First(); ok; ok = i.Next() {
			records++
		}
		return errors.Join(err, i.Close())
	}))
	require.Equal(t, 20, records)
	path, err := r.Keep()
	require.NoError(t, err)
	require.NoError(t, r.Abort(), "too late")
	replaced := d.Live()
	require.NoError(t, d.SetLive(path))
	require.Equal(t, path, d.Live())
	require.NoError(t, old.Close())
	require.NoError(t, d.Remove(replaced))
	_, db := openLive(t, d.options)
	_, done, err := db.Get([]byte{19})
	require.NoError(t, err)
	require.NoError(t, errors.Join(done.Close(), db.Close()))
	require.ElementsMatch(t, []string{"CURRENT", "gen-000002"}, namesIn(t, d))
}

func TestBadArchivesAreRefused(t *testing.T) {
	d, err := OpenDir(testDir, Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	data := archiveOf(t)
	change := func(at int, bits byte) []byte {
		b := bytes.Clone(data)
		b[at] ^= bits
		return b
	}
	head := func(files ...archiveFile) []byte {
		x := archiveIndex{Header: testHeader, files: files}
		return x.appendHead(nil)
	}
	refused := func(data []byte, says string) {
		t.Helper()
		r, err := receive(t, d, data)
		require.ErrorContains(t, err, says)
		require.ErrorIs(t, r.Finish(), err, "the first failure is kept")
		require.NoError(t, r.Abort())
		require.ElementsMatch(t, []string{"CURRENT", "gen-000001"}, namesIn(t, d))
	}
	for name, tt := range map[string]struct {
		data []byte
		says string
	}{
		"empty":         {nil, "ended early"},
		"no archive":    {[]byte(strings.Repeat("job ", 10)), "no snapshot archive"},
		"newer release": {change(11, 6), "format 4, this node knows only 2 and 3"},
		"goes on":       {append(bytes.Clone(data), 0), "goes on after its end"},
		"path":          {head(archiveFile{name: "../CURRENT"}), "file name"},
		"hidden path":   {head(archiveFile{name: ".."}), "file name"},
		"same name":     {head(archiveFile{name: "a"}, archiveFile{name: "a"}), "twice"},
		"size":          {head(archiveFile{name: "a", size: -1}), "bytes"},
	} {
		t.Run(name, func(t *testing.T) { refused(tt.data, tt.says) })
	}
	for cut := 1; cut < len(data); cut += 97 {
		refused(data[:cut], "ended early")
	}
	for at := range data {
		if at%49 == 0 || at > len(data)-30 {
			refused(change(at, 1<<(at%8)), "")
		}
	}
}

func TestAHeaderIsCheckedBeforeTheFirstFile(t *testing.T) {
	d, err := OpenDir(testDir, Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	bad := errors.New("not for this node")
	r, err := d.Receive(func(h Header) error {
		require.Equal(t, testHeader, h)
		return bad
	})
	require.NoError(t, err)
	x := archiveIndex{Header: testHeader, files: []archiveFile{{name: "a", size: 1}}}
	_, err = r.Write(x.appendHead(nil))
	require.ErrorIs(t, err, bad)
	require.NoError(t, r.Abort())
}

func FuzzReceiver(f *testing.F) {
	x := archiveIndex{Header: testHeader, files: []archiveFile{{name: "000001.log", size: 3}, {name: "MANIFEST-1"}}}
	whole := x.appendHead(nil)
	whole = append(whole, "abc\x36\x4b\x3f\xb7\x00\x00\x00\x00"...)
	whole = append(whole, archiveEnd...)
	f.Add(whole, 3)
	f.Add([]byte(archiveMagic), 1)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		if size < 1 || size > 1<<20 {
			return
		}
		d, err := OpenDir(testDir, Options{FS: vfs.NewMem()})
		require.NoError(t, err)
		r, err := d.Receive(anyHeader)
		require.NoError(t, err)
		rest := data
		for len(rest) > 0 {
			n, err := r.Write(rest[:min(size, len(rest))])
			if err != nil {
				break
			}
			rest = rest[n:]
		}
		if r.Finish() == nil {
			require.EqualValues(t, r.index.size(), len(data), "all of it and no more")
		}
		require.NoError(t, r.Abort())
		require.ElementsMatch(t, []string{"CURRENT", "gen-000001"}, namesIn(t, d), "no leftovers, no files elsewhere")
	})
}
