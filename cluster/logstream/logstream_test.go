package logstream

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/golden"
)

func some() []Frame {
	seen := NewSeen(9, time.UnixMilli(1_700_000_000_123))
	seen.Data = []byte{} // as it is read
	return []Frame{
		seen,
		{Kind: Entry, Index: 8, Term: 2, Data: []byte("an entry")},
		{Kind: Entry, Index: 9, Term: 3, Data: []byte{}},
	}
}

func stream(t testing.TB, frames ...Frame) []byte {
	var b bytes.Buffer
	w, err := NewWriter(&b)
	require.NoError(t, err)
	for _, f := range frames {
		require.NoError(t, w.Write(f))
	}
	require.NoError(t, w.Flush())
	return b.Bytes()
}

func readAll(b []byte) (frames []Frame, err error) {
	r := NewReader(bytes.NewReader(b))
	for {
		f, err := r.Next()
		if err != nil {
			return frames, err
		}
		frames = append(frames, f)
	}
}

func TestAStreamKeepsItsBytes(t *testing.T) {
	frames, err := readAll(golden.Frozen(t, "stream-1", stream(t, some()...)))
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, some(), frames)
	require.Equal(t, int64(1_700_000_000_123), frames[0].At().UnixMilli())
}

// Whatever byte is changed, no wrong frame is read.
func TestEveryChangedByteOfAStreamIsFound(t *testing.T) {
	whole := stream(t, some()...)
	for i := range whole {
		changed := bytes.Clone(whole)
		changed[i] ^= 0x10
		frames, err := readAll(changed)
		require.Error(t, err)
		require.NotErrorIs(t, err, io.EOF, "byte %d", i)
		require.Equal(t, some()[:len(frames)], append([]Frame{}, frames...))
	}
}

func TestACutStreamIsNotAtItsEnd(t *testing.T) {
	whole := stream(t, some()...)
	ends := 0
	for n := range whole {
		if _, err := readAll(whole[:n]); err == io.EOF {
			ends++ // between two frames, or nothing
		}
	}
	require.Equal(t, 1+len(some()), ends)
}

func TestAFrameHasABound(t *testing.T) {
	w, err := NewWriter(io.Discard)
	require.NoError(t, err)
	require.ErrorContains(t, w.Write(Frame{Kind: Entry, Data: make([]byte, MaxData+1)}), "a stream takes")
	_, err = readAll(append(stream(t), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
	require.ErrorIs(t, err, ErrDamaged)
}

func FuzzReader(f *testing.F) {
	f.Add(stream(f, some()...))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		frames, err := readAll(data)
		require.Error(t, err)
		size := 0
		for _, frame := range frames {
			size += len(frame.Data)
		}
		require.LessOrEqual(t, size, len(data))
	})
}
