package beanstalk

import (
	"fmt"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

// A stranger may watch as many tubes as there may be, on thousands of connections. What
// that makes for the garbage collector must not grow with the square of the tubes.
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

// A reserve that is over may still read the list that it was given.
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
