package beanstalk

import (
	"fmt"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

// Any client may watch the maximum number of tubes on thousands of connections. The garbage
// of that must not grow with the square of the number of tubes.
func TestWatchingManyTubesIsCheap(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	c := newConn(New(Options{}), near)
	names := make([]string, job.MaxReserveTopics-1)
	for i := range names {
		names[i] = fmt.Sprintf("tube-%d", i)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, name := range names {
		c.watch(name)
	}
	runtime.ReadMemStats(&after)
	require.Len(t, c.watched, job.MaxReserveTopics)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(len(names)*2048), "bytes")
}

// A reserve that has ended may still read its list.
func TestAListOfWatchedTubesIsNeverChanged(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	c := newConn(New(Options{}), near)
	for _, name := range []string{"a", "b", "c"} {
		c.watch(name)
	}
	given := c.watched
	c.watch("d")
	c.ignore("b")
	c.watch("e")
	c.ignore("e")
	c.watch("f")
	require.Equal(t, []string{defaultTube, "a", "b", "c"}, given)
	require.Equal(t, []string{defaultTube, "a", "c", "d", "f"}, c.watched)
}
