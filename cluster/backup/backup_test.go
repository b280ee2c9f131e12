package backup

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden file of the present format, if there is none")

func header(size int) Header {
	return Header{
		ClusterID: "k3vq", NodeID: "n1", Release: "v0.1.0", Index: 42, Term: 3, QueueTimeMS: 1_700_000_000_000, TakenMS: 1_700_000_000_500,
		ClusterVersion: 1, StateFormat: 8, StateBytes: int64(size), Counts: Counts{Topics: 2, Delayed: 10, Ready: 3, Dead: 1},
	}
}

// state returns bytes that compress in their first half.
func state(size int) []byte {
	b := make([]byte, size)
	rnd := rand.NewChaCha8([32]byte{1})
	_, _ = rnd.Read(b[size/2:])
	return b
}

func file(t testing.TB, data []byte) []byte { return fileOf(t, header(0), data) }

func fileOf(t testing.TB, h Header, data []byte) []byte {
	var out bytes.Buffer
	h.StateBytes = int64(len(data))
	w, err := NewWriter(&out, h)
	require.NoError(t, err)
	_, err = io.Copy(w, bytes.NewReader(data))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func read(data []byte) (Header, []byte, error) {
	r, err := NewReader(bytes.NewReader(data))
	if err != nil {
		return Header{}, nil, err
	}
	defer r.Close()
	got, err := io.ReadAll(r)
	return r.Header, got, err
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, size := range []int{0, 1, BlockBytes - 1, BlockBytes, BlockBytes + 1, 5*BlockBytes + 17} {
		data := state(size)
		h, got, err := read(file(t, data))
		require.NoError(t, err, "%d bytes", size)
		require.Equal(t, header(size), h)
		require.True(t, bytes.Equal(data, got), "%d bytes", size)
	}
}

func TestABackupOfAnotherSizeThanItsHeaderIsNotClosed(t *testing.T) {
	w, err := NewWriter(io.Discard, header(10))
	require.NoError(t, err)
	_, err = w.Write(make([]byte, 9))
	require.NoError(t, err)
	require.ErrorContains(t, w.Close(), "9 bytes")
}

func TestEveryChangedByteIsFound(t *testing.T) {
	whole := file(t, state(400))
	for i := range whole {
		changed := bytes.Clone(whole)
		changed[i] ^= 0x10
		_, _, err := read(changed)
		require.Error(t, err, "byte %d of %d", i, len(whole))
	}
	for n := range whole {
		_, _, err := read(whole[:n])
		require.Error(t, err, "the first %d bytes", n)
	}
	_, _, err := read(append(bytes.Clone(whole), 0))
	require.ErrorIs(t, err, ErrDamaged)
}

func TestACutFileLacksItsEnd(t *testing.T) {
	whole := file(t, state(5000))
	h := header(5000)
	require.NoError(t, CheckEnd(bytes.NewReader(whole), int64(len(whole)), &h))
	for _, n := range []int{0, 10, len(whole) / 2, len(whole) - 1} {
		require.ErrorIs(t, CheckEnd(bytes.NewReader(whole[:n]), int64(n), &h), ErrDamaged, "%d bytes", n)
	}
	longer := append(bytes.Clone(whole), 0)
	require.ErrorIs(t, CheckEnd(bytes.NewReader(longer), int64(len(longer)), &h), ErrDamaged)
	h.StateBytes++
	require.ErrorIs(t, CheckEnd(bytes.NewReader(whole), int64(len(whole)), &h), ErrDamaged)
}

func TestMessagesSayWhatIsWrong(t *testing.T) {
	whole := file(t, state(3000))
	with := func(at int, b byte) []byte {
		c := bytes.Clone(whole)
		c[at] = b
		return c
	}
	for want, data := range map[string][]byte{
		"no backup of tarry":        []byte("PK\x03\x04 a zip archive"),
		"format 3, and this":        with(11, 3),
		"its header has":            with(12, 0xff),
		"header does not match":     with(20, 'x'),
		"it ends early":             whole[:len(whole)-1],
		"block 1 does not match":    with(len(whole)-endLen-2, 'x'),
		"does not match the checks": with(len(whole)-1, whole[len(whole)-1]^1),
	} {
		_, _, err := read(data)
		require.ErrorContains(t, err, want)
	}
	_, err := NewReader(iotest.ErrReader(os.ErrClosed))
	require.ErrorIs(t, err, os.ErrClosed)
}

// A file has one id, however it is read; another file has another.
func TestTheIDOfAFile(t *testing.T) {
	one, other := file(t, state(1000)), file(t, state(1001))
	id, err := ReadID(bytes.NewReader(one), int64(len(one)))
	require.NoError(t, err)
	r, err := NewReader(bytes.NewReader(one))
	require.NoError(t, err)
	defer r.Close()
	require.Empty(t, r.ID())
	_, err = io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, id, r.ID())
	require.Len(t, id, 32)
	second, err := ReadID(bytes.NewReader(other), int64(len(other)))
	require.NoError(t, err)
	require.NotEqual(t, id, second)
	_, err = ReadID(bytes.NewReader(one[:500]), 500)
	require.ErrorIs(t, err, ErrDamaged)
}

// The golden file of a format was written when the format was made. Each later release
// must read it.
func TestGoldenFiles(t *testing.T) {
	for format := uint32(1); format <= FormatVersion; format++ {
		h := header(0)
		if format == 2 {
			h.BaseID, h.BaseTakenMS, h.BaseName = "000102030405060708090a0b0c0d0e0f", 1_699_999_000_000, "monday.backup"
		}
		require.Equal(t, format, h.Format())
		golden(t, fmt.Sprintf("testdata/format%d.tarry-backup", format), h)
	}
}

func golden(t *testing.T, name string, h Header) {
	data := state(BlockBytes + 300)
	copy(data[BlockBytes/2:], make([]byte, BlockBytes/2-200)) // keeps the file small
	if _, err := os.Stat(name); err != nil && *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(name, fileOf(t, h, data), 0o644))
	}
	h.StateBytes = int64(len(data))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	found, got, err := read(text)
	require.NoError(t, err)
	require.Equal(t, h, found)
	require.True(t, bytes.Equal(data, got))
}

// A file from anywhere is read or refused, in bounded memory.
func FuzzReader(f *testing.F) {
	f.Add(file(f, state(100)))
	f.Add(file(f, state(5000)))
	f.Add([]byte(magic + "\x00\x00\x00\x01\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		h, got, err := read(data)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(24<<20)+8*uint64(len(got)))
		if err != nil {
			require.Less(t, len(err.Error()), 1000)
			return
		}
		require.Equal(t, h.StateBytes, int64(len(got)))
	})
}
