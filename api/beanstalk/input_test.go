package beanstalk

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

// reading is a connection that only reads, from r.
type reading struct {
	net.Conn
	r io.Reader
}

func (c reading) Read(p []byte) (int, error)      { return c.r.Read(p) }
func (c reading) SetReadDeadline(time.Time) error { return nil }

// lines reads all lines; a line that was too long is shown as "!".
func lines(in *input) (got []string, err error) {
	for {
		line, state := in.line()
		switch state {
		case whole:
			got = append(got, string(line))
		case tooLong:
			got = append(got, "!")
		case partial:
			if err := in.fill(); err != nil {
				return got, err
			}
		}
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, c := range map[string]struct {
		sent string
		want []string
	}{
		"nothing":                          {"", nil},
		"one":                              {"a\r\n", []string{"a"}},
		"two, and an unfinished one":       {"a\r\nb\r\nc", []string{"a", "b"}},
		"an empty one":                     {"\r\n\r\na\r\n", []string{"", "", "a"}},
		"LF alone ends none":               {"a\nb\r\n", []string{"a\nb"}},
		"CR alone hides what follows":      {"a\rb\r\nc\r\n", nil},
		"CR alone, until the line is full": {"a\rb\r\n" + strings.Repeat("y", 219) + "\r\nc\r\n", []string{"!", "c"}},
		"the longest":                      {long[:222] + "\r\na\r\n", []string{long[:222], "a"}},
		"one too long":                     {long + "\r\na\r\n", []string{"!", "a"}},
		"LF just out of sight":             {long[:223] + "\r\na\r\nb\r\n", []string{"!", "b"}},
		"many":                             {strings.Repeat("abc\r\n", 10000), strings.Split(strings.Repeat("abc ", 9999)+"abc", " ")},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(c.sent), iotest.OneByteReader(strings.NewReader(c.sent)), iotest.DataErrReader(strings.NewReader(c.sent))} {
				in := newInput(reading{r: r})
				got, err := lines(in)
				require.ErrorIs(t, err, io.EOF)
				require.Equal(t, c.want, got)
				in.close()
			}
		})
	}
}

func TestBodies(t *testing.T) {
	for _, size := range []int{0, 1, smallBuffer - 10, smallBuffer, largeBuffer, largeBuffer * 3} {
		body := bytes.Repeat([]byte("\r\nb"), size/3+1)[:size]
		sent := "put\r\n" + string(body) + "\r\nnext\r\n"
		for _, r := range []io.Reader{strings.NewReader(sent), iotest.OneByteReader(strings.NewReader(sent)), iotest.HalfReader(strings.NewReader(sent))} {
			in := newInput(reading{r: r})
			awaitLine(t, in, "put")
			got, ok, err := in.body(size, roomy)
			require.NoError(t, err)
			require.True(t, ok)
			require.True(t, bytes.Equal(body, got), "size %d", size)
			awaitLine(t, in, "next")
			require.ErrorIs(t, in.skip(1), io.EOF)
		}
		in := newInput(reading{r: strings.NewReader(sent)})
		awaitLine(t, in, "put")
		require.NoError(t, in.skip(int64(size)+2))
		awaitLine(t, in, "next")
	}
}

func roomy(int) bool { return true }

// An announced body uses no memory before it arrives.
func TestABodyUsesMemoryAsItArrives(t *testing.T) {
	const size = 1 << 20
	taken := 0
	r := &countingReader{r: strings.NewReader(strings.Repeat("b", size) + "\r\n")}
	_, ok, err := newInput(reading{r: r}).body(size, func(more int) bool {
		taken += more
		require.LessOrEqual(t, taken, max(4*r.n, 4<<10))
		return true
	})
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, size+2, taken)

	in := newInput(reading{r: strings.NewReader(strings.Repeat("b", 10_000) + "\r\nnext\r\n")})
	got, _, err := in.body(10_000, func(more int) bool { return more <= 4<<10 })
	require.ErrorIs(t, err, errNoRoom)
	require.NoError(t, in.skip(int64(10_002-len(got))))
	awaitLine(t, in, "next")
}

// countingReader counts the bytes that were read.
type countingReader struct {
	r io.Reader
	n int
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

func TestBodyWithAnotherEnd(t *testing.T) {
	in := newInput(reading{r: strings.NewReader("abcdeuse\r\n")})
	_, ok, err := in.body(3, roomy)
	require.NoError(t, err)
	require.False(t, ok)
	awaitLine(t, in, "use")
	_, _, err = in.body(3, roomy)
	require.ErrorIs(t, err, io.EOF)
}

func awaitLine(t *testing.T, in *input, want string) {
	t.Helper()
	for {
		line, state := in.line()
		if state == whole {
			require.Equal(t, want, string(line))
			return
		}
		require.NoError(t, in.fill())
	}
}

// FuzzInput checks that lines and bodies never exceed what was sent, and that memory stays
// within the buffer and the body.
func FuzzInput(f *testing.F) {
	f.Add([]byte("put 0 0 1 1\r\nx\r\nuse a\r\n"), 3)
	f.Add([]byte("a\rb\r\n"+strings.Repeat("x", 500)), 1)
	f.Fuzz(func(t *testing.T, sent []byte, chunk int) {
		r := &chunks{sent, max(chunk%4096, 1)}
		in := newInput(reading{r: r})
		defer in.close()
		for {
			if len(in.buf) > largeBuffer {
				t.Fatalf("the buffer has %d bytes", len(in.buf))
			}
			line, state := in.line()
			var err error
			switch {
			case state == whole && len(line) > maxLine-2:
				t.Fatalf("a line of %d bytes", len(line))
			case state == whole && len(line)%3 == 1:
				_, _, err = in.body(len(line), roomy)
			case state == whole && len(line)%3 == 2:
				err = in.skip(int64(len(line)))
			case state == partial:
				err = in.fill()
			}
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatal(err)
				}
				return
			}
		}
	})
}

// chunks reads at most size bytes at once.
type chunks struct {
	data []byte
	size int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.size)], c.data)
	c.data = c.data[n:]
	return n, nil
}
