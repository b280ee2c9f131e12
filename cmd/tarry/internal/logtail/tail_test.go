package logtail

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func write(t *testing.T, to *Tail, line string) {
	t.Helper()
	n, err := to.Write([]byte(line))
	require.NoError(t, err)
	require.Equal(t, len(line), n)
}

func TestTheLastLinesAreKept(t *testing.T) {
	tail := New(10)
	require.Empty(t, tail.Lines())
	write(t, tail, "one\n")
	write(t, tail, "two\n")
	require.Equal(t, []string{"one", "two"}, tail.Lines())
	write(t, tail, "three\n")
	require.Equal(t, []string{"two", "three"}, tail.Lines(), "11 bytes are too many")
	write(t, tail, strings.Repeat("x", 20)+"\n")
	require.Equal(t, []string{strings.Repeat("x", 10)}, tail.Lines(), "a line that is too long is cut")
}

func TestLinesThatWereGivenDoNotChange(t *testing.T) {
	tail := New(10)
	write(t, tail, "one\n")
	lines := tail.Lines()
	write(t, tail, "0123456789\n")
	require.Equal(t, []string{"one"}, lines)
}

func TestManyMayWriteAtATime(t *testing.T) {
	tail := New(1000)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 1000 {
				_, _ = fmt.Fprintf(tail, "%d-%d\n", i, j)
			}
		})
	}
	all.Wait()
	bytes := 0
	for _, line := range tail.Lines() {
		require.Regexp(t, `^\d-\d+$`, line)
		bytes += len(line)
	}
	require.LessOrEqual(t, bytes, 1000)
	require.Greater(t, bytes, 990)
}
