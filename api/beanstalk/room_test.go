package beanstalk

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/addrlimit"
	"tarry/job/jobpb"
)

// empty is a queue without topics.
type empty struct{ taking }

func (empty) Read(context.Context, *jobpb.Read, bool) (*jobpb.ReadResult, error) {
	return &jobpb.ReadResult{}, nil
}

func withBudget(bytes int64) *Server {
	return New(Options{Queue: empty{}, Logger: slog.New(slog.DiscardHandler), MaxBufferedBytes: bytes})
}

func longName(i int) string { return fmt.Sprintf("%s-%d", strings.Repeat("n", 190), i) }

// watchUntilFull watches tubes until there is no room for another one, and returns their number.
func watchUntilFull(t *testing.T, s *Server) int {
	c, _ := start(t, s)
	in := bufio.NewReader(c)
	say := func(line string) string {
		send(t, c, line+"\r\n")
		reply, err := in.ReadString('\n')
		require.NoError(t, err)
		return reply
	}
	for i := range 999 {
		if say("watch "+longName(i)) != "OUT_OF_MEMORY\r\n" {
			continue
		}
		require.Equal(t, "OUT_OF_MEMORY\r\n", say("watch "+longName(i)))
		require.Equal(t, fmt.Sprintf("WATCHING %d\r\n", i), say("ignore "+longName(0)))
		require.Equal(t, fmt.Sprintf("WATCHING %d\r\n", i+1), say("watch "+longName(i)))
		return i
	}
	return 999
}

func TestWatchedNamesCountInTheBudget(t *testing.T) {
	s := withBudget(64 << 10)
	require.Less(t, watchUntilFull(t, s), 400)
	require.LessOrEqual(t, s.bodies.Held(), int64(64<<10))
}

func TestANodeKnowsABoundedNumberOfTubes(t *testing.T) {
	s := withBudget(64 << 20)
	s.tubes.room = addrlimit.New(9, 9)
	require.Equal(t, 9, watchUntilFull(t, s), "and the default tube")
	c, _ := start(t, s)
	send(t, c, "use another\r\n")
	require.Equal(t, "OUT_OF_MEMORY\r\n", receive(t, c))
	send(t, c, "use "+longName(3)+"\r\n")
	require.Equal(t, "USING "+longName(3)+"\r\n", receive(t, c))
}

func TestTheTubesOfOneAddressLeaveRoomForOthers(t *testing.T) {
	tubes := newTubes()
	tubes.room = addrlimit.New(4, 2)
	greedy, other := tubes.room.Of("192.0.2.1:1"), tubes.room.Of("192.0.2.2:1")
	require.True(t, tubes.watch("a", 1, greedy))
	require.True(t, tubes.watch("b", 1, greedy))
	require.False(t, tubes.watch("c", 1, greedy))
	require.False(t, tubes.use("c", 1, greedy))
	require.True(t, tubes.use("c", 1, other))
	require.True(t, tubes.use("c", 1, greedy), "the other has made it known")
	require.True(t, tubes.watch("a", -1, greedy))
	require.True(t, tubes.watch("d", 1, greedy), "the room is given back")
}

// A reply grows with what other connections do.
func TestAListThatNobodyReadsCountsInTheBudget(t *testing.T) {
	s := withBudget(1 << 20)
	for i := range 1000 {
		s.tubes.watch(longName(i), 1, s.tubes.room.Of(""))
	}
	c, _ := start(t, s)
	send(t, c, "list-tubes\r\n")
	head := make([]byte, len("OK "))
	_, err := io.ReadFull(c, head) // the server is in the middle of a write
	require.NoError(t, err)
	require.Equal(t, "OK ", string(head))
	require.Greater(t, s.bodies.Held(), int64(1000*len(longName(0))))

	for i := range 4000 {
		s.tubes.watch(longName(1000+i), 1, s.tubes.room.Of(""))
	}
	other, _ := start(t, s)
	send(t, other, "list-tubes\r\n")
	require.Equal(t, "OUT_OF_MEMORY\r\n", receive(t, other))
}

func TestAReplyBeyondTheBudgetEndsTheConnection(t *testing.T) {
	s := withBudget(1 << 20)
	_, end := net.Pipe()
	c := newConn(s, end)
	c.out = make([]byte, 2<<20)
	require.ErrorIs(t, c.flush(), errNoReplyRoom)
}
