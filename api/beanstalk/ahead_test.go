package beanstalk_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/api/beanstalk"
	"tarry/internal/testseed"
	"tarry/job"
	"tarry/job/jobpb"
)

// countedQueue counts the calls that reserve, each of which is a commit.
type countedQueue struct {
	*apitest.Queue

	mu       sync.Mutex
	reserves int
	holds    []int64 // of the calls that delete, too

	loses    atomic.Bool  // what gives back a job that was reserved ahead is refused
	refusal  jobpb.Code   // with this code in its result; 0: with an error
	attempts atomic.Int64 // of these
}

func (q *countedQueue) Do(ctx context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	if q.loses.Load() && ops[0].GetRelease().GetUndelivered() {
		q.attempts.Add(1)
		if q.refusal != 0 {
			return []*jobpb.Result{{Code: q.refusal}}, nil
		}
		return nil, job.Unknown("lost")
	}
	return q.Queue.Do(ctx, ops)
}

func (q *countedQueue) Reserve(ctx context.Context, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error) {
	q.mu.Lock()
	q.reserves++
	q.mu.Unlock()
	return q.Queue.Reserve(ctx, r, wait)
}

func (q *countedQueue) DeleteAndReserve(ctx context.Context, d *jobpb.Delete, r *jobpb.Reserve) (*jobpb.Result, []*jobpb.Reserved, error) {
	q.mu.Lock()
	q.holds = append(q.holds, r.HoldMs)
	q.mu.Unlock()
	return q.Queue.DeleteAndReserve(ctx, d, r)
}

func (q *countedQueue) counts() (reserves int, holds []int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.reserves, q.holds
}

// session is a client whose every line gets one reply.
type session struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// aheadServer starts a server with so many jobs, and connects to it twice.
func aheadServer(t *testing.T, hold time.Duration, jobs int) (q *countedQueue, worker, other *session) {
	q = &countedQueue{Queue: apitest.New(t)}
	addr := serve(t, beanstalk.Options{Queue: q, Logger: testLogger(t), Hold: hold})
	connect := func() *session {
		c, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
		return &session{t, c, bufio.NewReader(c)}
	}
	worker, other = connect(), connect()
	for i := range jobs {
		other.say("put 0 0 60 1\r\nx", fmt.Sprintf("INSERTED %d", i+1))
	}
	return q, worker, other
}

// say sends lines in one packet and requires the replies, without their bodies.
func (s *session) say(lines string, replies ...string) {
	s.t.Helper()
	_, err := io.WriteString(s.conn, lines+"\r\n")
	require.NoError(s.t, err)
	for _, want := range replies {
		require.Equal(s.t, want, s.reply(), "to %q", lines)
	}
}

func (s *session) reply() string {
	s.t.Helper()
	line, err := s.in.ReadString('\n')
	require.NoError(s.t, err)
	line = strings.TrimSuffix(line, "\r\n")
	word, _, _ := strings.Cut(line, " ")
	if word == "RESERVED" || word == "FOUND" {
		_, err = s.in.ReadString('\n')
		require.NoError(s.t, err)
		line = strings.TrimSuffix(line, " 1")
	}
	return line
}

// stats returns lines of stats-job.
func (s *session) stats(id int, keys ...string) (lines []string) {
	s.t.Helper()
	_, err := fmt.Fprintf(s.conn, "stats-job %d\r\n", id)
	require.NoError(s.t, err)
	var size int
	_, err = fmt.Sscanf(s.reply(), "OK %d", &size)
	require.NoError(s.t, err)
	text := make([]byte, size+2)
	_, err = io.ReadFull(s.in, text)
	require.NoError(s.t, err)
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		for _, k := range keys {
			if k == key {
				lines = append(lines, value)
			}
		}
	}
	return lines
}

// teach has the server learn that the worker reserves after each delete, and leaves it with
// the next job, whose number it returns.
func (s *session) teach() (id int) {
	s.t.Helper()
	s.say("reserve", "RESERVED 1")
	for id = 1; id < 5; id++ {
		s.say(fmt.Sprintf("delete %d\r\nreserve", id), "DELETED", fmt.Sprintf("RESERVED %d", id+1))
	}
	return id
}

const anHour = time.Hour // no test takes so long

func TestAWorkersNextJobComesWithItsDelete(t *testing.T) {
	const jobs = 20
	q, worker, _ := aheadServer(t, anHour, jobs)
	worker.say("reserve-with-timeout 0", "RESERVED 1")
	for id := 1; id < jobs; id++ {
		worker.say(fmt.Sprintf("delete %d", id), "DELETED")
		worker.say("reserve-with-timeout 0", fmt.Sprintf("RESERVED %d", id+1))
	}
	reserves, holds := q.counts()
	require.Equal(t, 5, reserves, "the first, and those from which the habit is learned")
	require.Len(t, holds, jobs-5)
	require.EqualValues(t, 1000, holds[0], "the reservation covers the time that the job may be kept")
	worker.say(fmt.Sprintf("delete %d", jobs), "DELETED")
	worker.say("reserve-with-timeout 0", "TIMED_OUT")
}

func TestAReserveThatFollowsInTheSamePacketNeedsNoHabit(t *testing.T) {
	q, worker, _ := aheadServer(t, -1, 3)
	worker.say("reserve", "RESERVED 1")
	worker.say("delete 1\r\nreserve\r\ndelete 2\r\nreserve-with-timeout 0\r\ndelete 3\r\npeek-ready", "DELETED", "RESERVED 2", "DELETED", "RESERVED 3", "DELETED", "NOT_FOUND")
	reserves, holds := q.counts()
	require.Equal(t, 1, reserves)
	require.Equal(t, []int64{0, 0}, holds)
}

func TestNoJobIsReservedAheadForOtherClients(t *testing.T) {
	q, worker, _ := aheadServer(t, anHour, 30)
	id := 1
	cycle := func(between ...string) {
		worker.say("reserve", fmt.Sprintf("RESERVED %d", id))
		for _, line := range between {
			worker.say(line, "USING default")
		}
		worker.say(fmt.Sprintf("delete %d", id), "DELETED")
		id++
	}
	for range 3 {
		// Each time one delete in four has no reserve after it.
		for range 3 {
			cycle()
		}
		cycle()
		worker.say("list-tube-used", "USING default")
	}
	// A job that it had not reserved.
	worker.say(fmt.Sprintf("delete %d", id), "DELETED")
	id++
	cycle("list-tube-used")
	_, holds := q.counts()
	require.Empty(t, holds)
}

// Whatever comes instead of a reserve finds the job as if it had not been reserved.
func TestAJobThatWasReservedAheadIsGivenBackBeforeAnotherCommand(t *testing.T) {
	for _, c := range []struct{ line, reply string }{
		{"peek-ready", "FOUND 6"},
		{"reserve-job 6", "RESERVED 6"},
		{"delete 6", "DELETED"},
		{"kick-job 6", "NOT_FOUND"},
		{"kick 10", "KICKED 0"},
		{"release 6 0 0", "NOT_FOUND"},
		{"bury 6 0", "NOT_FOUND"},
		{"touch 6", "NOT_FOUND"},
		{"put 0 0 60 1\r\nx", "INSERTED 9"},
		{"use a", "USING a"},
		{"watch a", "WATCHING 2"},
		{"ignore a", "WATCHING 1"},
		{"pause-tube default 0", "PAUSED"},
		{"list-tube-used", "USING default"},
		{"reserved", "BAD_FORMAT"},
		{"nonsense", "UNKNOWN_COMMAND"},
		{strings.Repeat("x", 300), "BAD_FORMAT"},
	} {
		t.Run(c.line[:min(20, len(c.line))], func(t *testing.T) {
			_, worker, other := aheadServer(t, anHour, 8)
			id := worker.teach()
			worker.say(fmt.Sprintf("delete %d", id), "DELETED")
			require.Equal(t, []string{"reserved"}, other.stats(6, "state"))
			worker.say(c.line, c.reply)
			if c.line != "delete 6" && c.line != "reserve-job 6" {
				require.Equal(t, []string{"ready", "0", "0"}, other.stats(6, "state", "reserves", "releases"))
				other.say("reserve", "RESERVED 6")
			}
			other.say("reserve", "RESERVED 7")
		})
	}
	t.Run("stats-job", func(t *testing.T) {
		_, worker, _ := aheadServer(t, anHour, 8)
		worker.say(fmt.Sprintf("delete %d", worker.teach()), "DELETED")
		require.Equal(t, []string{"ready", "0"}, worker.stats(6, "state", "reserves"))
	})
}

func TestAJobThatNobodyTakesInTimeIsGivenBack(t *testing.T) {
	_, worker, other := aheadServer(t, time.Millisecond, 8)
	worker.say(fmt.Sprintf("delete %d", worker.teach()), "DELETED")
	require.Eventually(t, func() bool { return other.stats(6, "state")[0] == "ready" }, time.Minute, time.Millisecond)
	require.Equal(t, []string{"0"}, other.stats(6, "reserves"))
	worker.say("reserve", "RESERVED 6")
	require.Equal(t, []string{"reserved", "1"}, other.stats(6, "state", "reserves"))
}

// slowQueue takes long for what deletes and reserves.
type slowQueue struct {
	*countedQueue
	takes atomic.Int64 // ns
}

func (q *slowQueue) DeleteAndReserve(ctx context.Context, d *jobpb.Delete, r *jobpb.Reserve) (*jobpb.Result, []*jobpb.Reserved, error) {
	defer func() { <-time.After(time.Duration(q.takes.Load())) }()
	return q.countedQueue.DeleteAndReserve(ctx, d, r)
}

// The client must have the job for its whole TTR, which began long before the reply here.
func TestAJobWhoseReservationBeganLongAgoIsGivenBack(t *testing.T) {
	q := &slowQueue{countedQueue: &countedQueue{Queue: apitest.New(t)}}
	addr := serve(t, beanstalk.Options{Queue: q, Logger: testLogger(t), Hold: 10 * time.Millisecond})
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	worker := &session{t, c, bufio.NewReader(c)}
	for i := range 8 {
		worker.say("put 0 0 60 1\r\nx", fmt.Sprintf("INSERTED %d", i+1))
	}
	id := worker.teach()
	q.takes.Store(int64(300 * time.Millisecond))
	before, _ := q.counts()
	worker.say(fmt.Sprintf("delete %d", id), "DELETED")
	worker.say("reserve", "RESERVED 6")
	after, holds := q.counts()
	require.Equal(t, before+1, after, "it was reserved anew")
	require.EqualValues(t, 210, holds[len(holds)-1])
}

func TestAJobThatIsKeptForAConnectionThatEndsIsGivenBack(t *testing.T) {
	for name, end := range map[string]func(*session){
		"quit":   func(s *session) { io.WriteString(s.conn, "quit\r\n") },
		"closed": func(s *session) { s.conn.Close() },
		"half a line": func(s *session) {
			io.WriteString(s.conn, "reserv")
			s.conn.(*net.TCPConn).CloseWrite()
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, worker, other := aheadServer(t, anHour, 6)
			worker.say(fmt.Sprintf("delete %d", worker.teach()), "DELETED")
			end(worker)
			other.say("reserve", "RESERVED 6") // after a wait
			require.Equal(t, []string{"1"}, other.stats(6, "reserves"))
		})
	}
}

func TestAJobIsGivenBackWhenTheServerStops(t *testing.T) {
	q := &countedQueue{Queue: apitest.New(t)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := beanstalk.New(beanstalk.Options{Queue: q, Logger: testLogger(t), Hold: anHour})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	worker := &session{t, c, bufio.NewReader(c)}
	for i := range 6 {
		worker.say("put 0 0 60 1\r\nx", fmt.Sprintf("INSERTED %d", i+1))
	}
	worker.say(fmt.Sprintf("delete %d", worker.teach()), "DELETED")
	require.NoError(t, s.Shutdown(t.Context()))
	require.ErrorIs(t, <-served, beanstalk.ErrClosed)
	j, err := q.JobBySeq(t.Context(), 6, true)
	require.NoError(t, err)
	require.Equal(t, jobpb.State_STATE_READY, j.State)
	require.Zero(t, j.Attempts)
}

// lose has the server reserve job 6 ahead for the worker and fail to give it back.
func (q *countedQueue) lose(worker *session) {
	worker.say(fmt.Sprintf("delete %d", worker.teach()), "DELETED")
	q.loses.Store(true)
	worker.say("list-tube-used", "USING default")
}

// While the outcome of giving it back is unknown, another consumer may have the job.
func TestAJobThatMayHaveBeenGivenBackIsNotHandedOut(t *testing.T) {
	for name, refusal := range map[string]jobpb.Code{"unknown": 0, "forbidden": jobpb.Code_FORBIDDEN} {
		t.Run(name, func(t *testing.T) {
			q, worker, other := aheadServer(t, anHour, 6)
			q.refusal = refusal
			q.lose(worker)
			require.Equal(t, []string{"reserved"}, other.stats(6, "state"))
			worker.say("reserve-with-timeout 0", "TIMED_OUT")
			q.loses.Store(false)
			before, _ := q.counts()
			worker.say("reserve", "RESERVED 6")
			after, _ := q.counts()
			require.Greater(t, after, before)
			require.Equal(t, []string{"1"}, other.stats(6, "reserves"))
		})
	}
}

func TestAJobIsGivenBackWhileItsConnectionIsQuiet(t *testing.T) {
	q, worker, other := aheadServer(t, anHour, 6)
	q.lose(worker)
	q.loses.Store(false)
	other.say("reserve", "RESERVED 6")
	worker.say("put 0 0 60 1\r\nx", "INSERTED 7")
}

func TestAJobIsGivenBackWhileItsConnectionWaits(t *testing.T) {
	q, worker, other := aheadServer(t, anHour, 6)
	q.lose(worker)
	worker.say("reserve")
	require.Eventually(t, func() bool { return q.Waiting() == 1 }, time.Minute, time.Millisecond)
	q.loses.Store(false)
	require.Equal(t, "RESERVED 6", worker.reply())
	require.Equal(t, []string{"1"}, other.stats(6, "reserves"))
}

func TestAJobWhoseReservationIsOverIsNotGivenBack(t *testing.T) {
	q, worker, other := aheadServer(t, anHour, 5)
	other.say("put 0 0 1 1\r\nx", "INSERTED 6")
	q.lose(worker)
	require.Eventually(t, func() bool {
		before := q.attempts.Load()
		worker.say("list-tube-used", "USING default")
		return q.attempts.Load() == before
	}, time.Minute, 50*time.Millisecond)
	worker.say("reserve", "RESERVED 6")
}

// The client's token may have been revoked.
func TestTheNodeGivesJobsBack(t *testing.T) {
	q, worker, other := aheadServer(t, anHour, 6)
	worker.say(fmt.Sprintf("delete %d", worker.teach()), "DELETED")
	worker.say("list-tube-used", "USING default")
	worker.say("reserve", "RESERVED 6")
	worker.conn.Close()
	other.say("reserve", "RESERVED 6")
	releases := 0
	for _, op := range q.Ops() {
		if op.GetRelease() != nil {
			releases++
			require.Equal(t, job.SystemPrincipal, op.Principal)
		}
	}
	require.Equal(t, 2, releases)
}

// One connection sees the same replies whether or not its next jobs are kept for it.
func TestAnAloneConnectionSeesNoDifference(t *testing.T) {
	q, kept, _ := aheadServer(t, anHour, 0)
	_, plain, _ := aheadServer(t, -1, 0)
	seed := testseed.New()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	last, ids := 0, 0
	// The order of the jobs must not depend on the clock.
	pri := func() uint32 { return rng.Uint32() >> 1 }
	line := func() string {
		switch rng.IntN(16) {
		case 0, 1, 2, 3:
			ids++
			return fmt.Sprintf("put %d %d 1000 1\r\nx", pri(), 100_000*(rng.IntN(8)/7))
		case 4, 5, 6:
			return fmt.Sprintf("delete %d", last)
		case 7:
			return fmt.Sprintf("delete %d", 1+rng.IntN(ids+1))
		case 8:
			return fmt.Sprintf("release %d %d 0", last, pri())
		case 9:
			return fmt.Sprintf("touch %d", last)
		case 10:
			return fmt.Sprintf("kick %d", rng.IntN(3))
		case 11:
			return fmt.Sprintf("%s %s", []string{"watch", "ignore", "use"}[rng.IntN(3)], []string{"a", "default"}[rng.IntN(2)])
		case 12:
			return []string{"peek-ready", "peek-delayed", "list-tubes-watched", "nonsense"}[rng.IntN(4)]
		case 13:
			return fmt.Sprintf("%s %d", []string{"touch", "reserve-job", "kick-job", "peek"}[rng.IntN(4)], 1+rng.IntN(ids+1))
		default:
			return "reserve-with-timeout 0"
		}
	}
	send := func(lines ...string) {
		text := strings.Join(lines, "\r\n")
		kept.say(text)
		plain.say(text)
		for range lines {
			want := plain.reply()
			require.Equal(t, want, kept.reply(), "to %q", text)
			fmt.Sscanf(want, "RESERVED %d", &last)
		}
	}
	for range 400 {
		if rng.IntN(4) > 0 {
			send(line())
			continue
		}
		for range rng.IntN(10) { // a worker
			send(fmt.Sprintf("delete %d", last))
			if rng.IntN(8) == 0 {
				send(line(), "reserve-with-timeout 0")
			} else {
				send("reserve-with-timeout 0")
			}
		}
	}
	_, holds := q.counts()
	require.NotEmpty(t, holds, "nothing was reserved ahead")
}

// The reserve behind a delete finds the job itself if its reservation has expired.
func TestADeleteOfAJobWhoseTimeIsOverReservesNotTheJobItself(t *testing.T) {
	for name, hold := range map[string]time.Duration{"in one packet": -1, "by habit": anHour} {
		t.Run(name, func(t *testing.T) {
			q, worker, other := aheadServer(t, hold, 4)
			other.say("put 0 0 1 1\r\nx", "INSERTED 5")
			id := worker.teach()
			require.Eventually(t, func() bool { return other.stats(id, "state")[0] == "ready" }, time.Minute, 10*time.Millisecond)
			if hold < 0 {
				worker.say("delete 5\r\nreserve-with-timeout 0\r\nput 0 0 60 1\r\nx", "DELETED", "TIMED_OUT", "INSERTED 6")
				return
			}
			_, before := q.counts()
			worker.say("delete 5", "DELETED")
			_, after := q.counts()
			require.Len(t, after, len(before)+1, "it has reserved ahead")
			worker.say("reserve-with-timeout 0\r\nput 0 0 60 1\r\nx\r\nreserve", "TIMED_OUT", "INSERTED 6", "RESERVED 6")
		})
	}
}

// The second delete may have been applied or not: the job is not handed out.
func TestADeleteOfAJobWhoseTimeIsOverCanBeRepeated(t *testing.T) {
	q, worker, other := aheadServer(t, -1, 4)
	other.say("put 0 0 1 1\r\nx", "INSERTED 5")
	id := worker.teach()
	require.Eventually(t, func() bool { return other.stats(id, "state")[0] == "ready" }, time.Minute, 10*time.Millisecond)
	q.FailNext(nil, job.Unknown("lost"))
	worker.say("delete 5\r\nreserve-with-timeout 0\r\ndelete 5", "INTERNAL_ERROR", "RESERVED 5", "DELETED")
}

func TestADeleteThatFailsReservesNothing(t *testing.T) {
	q, worker, other := aheadServer(t, anHour, 8)
	id := worker.teach()
	q.FailNext(errors.New("no leader"))
	worker.say(fmt.Sprintf("delete %d\r\ndelete %d\r\nreserve", id, id), "INTERNAL_ERROR", "DELETED", "RESERVED 6")
	require.Equal(t, []string{"1"}, other.stats(6, "reserves"))
}
