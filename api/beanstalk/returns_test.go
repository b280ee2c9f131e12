package beanstalk_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/api/beanstalk"
	"tarry/internal/sleep"
	"tarry/job/jobpb"
)

// slowReturns is a queue in which a job of a closed connection is given back late.
type slowReturns struct{ *apitest.Queue }

func (q slowReturns) Do(ctx context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	if r := ops[0].GetRelease(); r != nil && r.Returned {
		sleep.For(ctx, 100*time.Millisecond)
	}
	return q.Queue.Do(ctx, ops)
}

func connectTo(t *testing.T, addr string) *session {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	return &session{t, c, bufio.NewReader(c)}
}

func TestAJobOfAClosedConnectionIsBackForTheNextOne(t *testing.T) {
	for name, end := range map[string]func(*session){
		"closed": func(s *session) { s.conn.Close() },
		"reset": func(s *session) {
			s.conn.(*net.TCPConn).SetLinger(0)
			s.conn.Close()
		},
		"quit": func(s *session) { io.WriteString(s.conn, "quit\r\n"); s.conn.Close() },
		"closed while a reserve waits": func(s *session) {
			io.WriteString(s.conn, "reserve-with-timeout 30\r\n")
			s.conn.Close()
		},
		"closed behind commands that were not read": func(s *session) {
			io.WriteString(s.conn, strings.Repeat("stats-job 1\r\n", 3))
			s.conn.Close()
		},
		"half closed": func(s *session) { s.conn.(*net.TCPConn).CloseWrite() },
	} {
		for _, first := range []string{"peek-ready", "reserve-with-timeout 0", "peek 1\r\npeek-ready", "stats-job 1", "watch x\r\nreserve-with-timeout 0"} {
			t.Run(name+", "+first, func(t *testing.T) {
				t.Parallel()
				addr := serve(t, beanstalk.Options{Queue: slowReturns{apitest.New(t)}, Logger: testLogger(t)})
				a := connectTo(t, addr)
				a.say("put 0 0 60 1\r\nx", "INSERTED 1")
				a.say("reserve", "RESERVED 1")
				end(a)
				b := connectTo(t, addr)
				switch first {
				case "stats-job 1":
					require.Equal(t, []string{"ready"}, b.stats(1, "state"))
				case "peek 1\r\npeek-ready":
					b.say(first, "FOUND 1", "FOUND 1")
				case "peek-ready":
					b.say(first, "FOUND 1")
				case "reserve-with-timeout 0":
					b.say(first, "RESERVED 1")
				default:
					b.say(first, "WATCHING 2", "RESERVED 1")
				}
			})
		}
	}
}

func TestAConnectionThatIsOpenIsNotWaitedFor(t *testing.T) {
	addr := serve(t, beanstalk.Options{Queue: apitest.New(t), Logger: testLogger(t)})
	a, b := connectTo(t, addr), connectTo(t, addr)
	a.say("put 0 0 60 1\r\nx", "INSERTED 1")
	a.say("reserve", "RESERVED 1")
	b.say("peek-ready", "NOT_FOUND")
	a.say("delete 1", "DELETED")
}

// As clients' tests do: one connection after the other, each with a job that the next one finds.
func TestJobsOfClosedConnectionsAreBackOnRealNodes(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) {
			addrs, leader := startNodes(t, nodes, 0)
			addr := addrs[(leader+1)%nodes] // a follower, if there is one
			first := connectTo(t, addr)
			first.say("put 0 0 60 1\r\nx", "INSERTED 1")
			first.say("reserve", "RESERVED 1")
			first.conn.Close()
			for range 200 {
				s := connectTo(t, addr)
				s.say("peek-ready", "FOUND 1")
				s.say("reserve", "RESERVED 1")
				s.conn.Close()
			}
		})
	}
}

func TestDeadlineSoonOfOneConnectionAfterTheOther(t *testing.T) {
	addrs, _ := startNodes(t, 1, 0)
	for i := range 30 {
		s := connectTo(t, addrs[0])
		for {
			_, err := io.WriteString(s.conn, "peek-ready\r\n")
			require.NoError(t, err)
			word, id, found := strings.Cut(s.reply(), " ")
			if !found {
				require.Equal(t, "NOT_FOUND", word)
				break
			}
			s.say("delete "+id, "DELETED")
		}
		id := fmt.Sprint(i + 1)
		s.say("put 0 0 1 1\r\nx", "INSERTED "+id)
		s.say("reserve", "RESERVED "+id)
		s.say("reserve", "DEADLINE_SOON")
		s.conn.Close()
	}
}
