package beanstalk_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"tarry/api/beanstalk"
	"tarry/internal/rates"
	"tarry/internal/sleep"
	"tarry/job"
	"tarry/job/jobpb"
)

// scripted is a queue with scripted results that records its calls.
type scripted struct {
	mu    sync.Mutex
	calls [][]*jobpb.Op
	seq   uint64
	err   error // of Do
	wait  chan struct{}
	code  jobpb.Code
}

func (q *scripted) Do(ctx context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls = append(q.calls, ops)
	if q.err != nil {
		return nil, q.err
	}
	results := make([]*jobpb.Result, len(ops))
	for i := range ops {
		q.seq++
		results[i] = &jobpb.Result{Code: q.code, Seq: q.seq}
	}
	return results, nil
}

// FinishAndReserve implements api.Queue. The protocol has no such command.
func (*scripted) FinishAndReserve(context.Context, []*jobpb.Finish, *jobpb.Reserve, bool) ([]*jobpb.Result, []*jobpb.Reserved, error) {
	return nil, nil, job.NotApplied("not scripted")
}

// DeleteAndReserve is a Do and a Reserve of a job of the topic "job".
func (q *scripted) DeleteAndReserve(ctx context.Context, d *jobpb.Delete, r *jobpb.Reserve) (*jobpb.Result, []*jobpb.Reserved, error) {
	results, err := q.Do(ctx, []*jobpb.Op{{Kind: &jobpb.Op_Delete{Delete: d}}})
	if err != nil {
		return nil, nil, err
	}
	if r.Topics[0] != "job" {
		return results[0], nil, nil
	}
	jobs, err := q.Reserve(ctx, r, 0)
	return results[0], jobs, err
}

// Reserve always returns a job for the topic "job", and waits otherwise.
func (q *scripted) Reserve(ctx context.Context, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error) {
	if r.Topics[0] == "job" {
		return []*jobpb.Reserved{{Seq: 7, Generation: 3, TtrMs: 60_000, Body: []byte("x")}}, nil
	}
	if q.wait != nil {
		q.wait <- struct{}{}
	}
	sleep.For(ctx, wait)
	return nil, ctx.Err()
}

// Read finds nothing.
func (q *scripted) Read(_ context.Context, r *jobpb.Read, _ bool) (*jobpb.ReadResult, error) {
	return &jobpb.ReadResult{Jobs: &jobpb.JobPage{}}, q.err
}

func (*scripted) Watch() job.Watch          { return nil }
func (*scripted) Rates(string) rates.Series { return rates.Series{} }
func (*scripted) TotalRates() rates.Series  { return rates.Series{} }

func (q *scripted) asked() [][]*jobpb.Op {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.calls
}

func (q *scripted) options(t testing.TB) beanstalk.Options {
	return beanstalk.Options{Queue: q, Logger: testLogger(t)}
}

// talk sends all lines at once, closes the sending half, and returns all replies.
func talk(t testing.TB, addr, sent string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, sent)
	require.NoError(t, err)
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	return string(got)
}

func TestFailuresHaveWords(t *testing.T) {
	for _, c := range []struct {
		err  error
		code jobpb.Code
		want string
	}{
		{err: job.NotApplied("no leader"), want: "INTERNAL_ERROR"},
		{err: job.Unknown("lost"), want: "INTERNAL_ERROR"},
		{err: io.ErrUnexpectedEOF, want: "INTERNAL_ERROR"},
		{err: job.Errorf(job.CodeOverloaded, "full"), want: "OUT_OF_MEMORY"},
		{err: job.Errorf(job.CodeDiskLow, "full"), want: "OUT_OF_MEMORY"},
		{err: job.Errorf(job.CodeTopicFull, "full"), want: "OUT_OF_MEMORY"},
		{code: jobpb.Code_TOO_MANY_TOPICS, want: "OUT_OF_MEMORY"},
		{code: jobpb.Code_INVALID, want: "INTERNAL_ERROR"},
	} {
		q := &scripted{err: c.err, code: c.code}
		require.Equal(t, c.want+"\r\n", talk(t, serve(t, q.options(t)), "put 0 0 1 1\r\nx\r\n"), "%v %v", c.err, c.code)
	}
	q := &scripted{err: job.NotApplied("no leader")}
	got := talk(t, serve(t, q.options(t)), "stats\r\nstats-job 1\r\npeek 1\r\npeek-ready\r\nkick 1\r\nkick-job 1\r\nlist-tubes\r\nstats-tube a\r\npause-tube a 1\r\ndelete 1\r\nreserve-job 1\r\n")
	require.Equal(t, strings.Repeat("INTERNAL_ERROR\r\n", 11), got)
}

func TestADrainingNodeRefusesPuts(t *testing.T) {
	q := &scripted{}
	o := q.options(t)
	var draining atomic.Bool
	o.Draining = draining.Load
	addr := serve(t, o)
	require.Equal(t, "INSERTED 1\r\n", talk(t, addr, "put 0 0 1 1\r\nx\r\n"))
	draining.Store(true)
	require.Equal(t, "DRAINING\r\nEXPECTED_CRLF\r\n", talk(t, addr, "put 0 0 1 1\r\nx\r\nput 0 0 1 1\r\nxyz"))
	require.Contains(t, talk(t, addr, "stats\r\n"), "\ndraining: true\n")
	require.Len(t, q.asked(), 1)
}

func TestPipelinedPutsShareACall(t *testing.T) {
	q := &scripted{}
	got := talk(t, serve(t, q.options(t)), strings.Repeat("put 0 0 1 1\r\nx\r\n", 20)+"use a\r\nput 0 0 1 1\r\nx\r\n")
	require.Equal(t, 21, strings.Count(got, "INSERTED "))
	require.True(t, strings.HasSuffix(got, "INSERTED 20\r\nUSING a\r\nINSERTED 21\r\n"), got)
	require.Len(t, q.asked(), 2)
	require.Equal(t, "default", q.asked()[0][19].GetAdd().Topic)
	require.Equal(t, "a", q.asked()[1][0].GetAdd().Topic)
}

func TestTheMemoryForBodiesIsBounded(t *testing.T) {
	q := &scripted{}
	o := q.options(t)
	o.MaxBufferedBytes = 204 // one address has half of it, of which two are for CRLF
	addr := serve(t, o)
	body := func(n int) string { return strings.Repeat("x", n) + "\r\n" }
	// Each put releases its memory, however it ends.
	for range 3 {
		require.Equal(t, "INSERTED\nOUT_OF_MEMORY\nEXPECTED_CRLF\nINSERTED\n",
			regexp.MustCompile(` \d+`).ReplaceAllString(strings.ReplaceAll(
				talk(t, addr, "put 0 0 1 60\r\n"+body(60)+"put 0 0 1 101\r\n"+body(101)+"put 0 0 1 90\r\n"+body(91)[:92]+"put 0 0 1 100\r\n"+body(100)), "\r\n", "\n"), ""))
	}
	// The memory of a small body is claimed when it is announced.
	slow, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer slow.Close()
	_, err = io.WriteString(slow, "put 0 0 1 80\r\nx")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return talk(t, addr, "put 0 0 1 30\r\n"+body(30)) == "OUT_OF_MEMORY\r\n" }, patience, 5*time.Millisecond)
	require.NoError(t, slow.Close())
	require.Eventually(t, func() bool { return strings.HasPrefix(talk(t, addr, "put 0 0 1 30\r\n"+body(30)), "INSERTED") }, patience, 5*time.Millisecond)
}

func TestAConnectionBeyondTheLimitGetsAnError(t *testing.T) {
	q := &scripted{}
	o := q.options(t)
	o.MaxConnections = 1
	addr := serve(t, o)
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, "use a\r\n")
	require.NoError(t, err)
	line, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "USING a\r\n", line)
	other, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer other.Close()
	got, err := io.ReadAll(other)
	require.NoError(t, err)
	require.Equal(t, "OUT_OF_MEMORY\r\n", string(got))
}

func TestCommandsAndFailuresAreCounted(t *testing.T) {
	q := &scripted{}
	o := q.options(t)
	registry := prometheus.NewRegistry()
	o.Registry = registry
	talk(t, serve(t, o), "put 0 0 1 1\r\nx\r\nput 0 0 1 1\r\nxyz\r\nput 0 0 1 x\r\nreserve-job 7\r\nnonsense\r\ndelete 0\r\n")
	families, err := registry.Gather()
	require.NoError(t, err)
	have := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "tarry_beanstalk_")
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			if v := m.GetCounter().GetValue() + m.GetGauge().GetValue(); v != 0 && name != "connections" {
				have[name] = v
			}
		}
	}
	require.Equal(t, map[string]float64{
		"connections_total": 1, "commands_total put": 2, "commands_total reserve-job": 1, "commands_total delete": 1,
		"failures_total EXPECTED_CRLF": 1, "failures_total BAD_FORMAT": 1, "failures_total UNKNOWN_COMMAND": 2,
	}, have)
}

func TestPutsHaveBeanstalkdsDefaults(t *testing.T) {
	q := &scripted{}
	talk(t, serve(t, q.options(t)), "put 5 4294967295 0 1\r\nx\r\nput 5 2 4294967295 1\r\nx\r\n")
	first, second := q.asked()[0][0].GetAdd(), q.asked()[0][1].GetAdd()
	require.Equal(t, job.MaxDelay.Milliseconds(), first.DelayMs)
	require.EqualValues(t, 1000, first.TtrMs)
	require.EqualValues(t, 5, first.Priority)
	require.Zero(t, first.MaxAttempts)
	require.EqualValues(t, 2000, second.DelayMs)
	require.Equal(t, job.MaxTTR.Milliseconds(), second.TtrMs)
}

func TestAnUnknownOutcomeKeepsTheReservation(t *testing.T) {
	q := &scripted{err: job.Unknown("lost")}
	got := talk(t, serve(t, q.options(t)), "watch job\r\nignore default\r\nreserve\r\ndelete 7\r\nrelease 7 0 0\r\nbury 7 0\r\ntouch 7\r\n")
	require.True(t, strings.HasSuffix(got, strings.Repeat("INTERNAL_ERROR\r\n", 4)), got)
	// At the end the job is released, with its fence.
	require.Eventually(t, func() bool { return len(q.asked()) == 5 }, patience, time.Millisecond)
	back := q.asked()[4][0].GetRelease()
	require.True(t, back.Returned)
	require.EqualValues(t, 7, back.Ref.Seq)
	require.EqualValues(t, 3, back.Ref.Generation)
}

func TestALongKickGoesInSteps(t *testing.T) {
	q := &scripted{}
	require.Equal(t, "KICKED 0\r\n", talk(t, serve(t, q.options(t)), "kick 1000000\r\n"))
	require.Len(t, q.asked(), 2)
	require.False(t, q.asked()[0][0].GetKickTopic().OrDelayed)
	require.True(t, q.asked()[1][0].GetKickTopic().OrDelayed)
	require.EqualValues(t, job.MaxKick, q.asked()[1][0].GetKickTopic().Max)
}

// connected starts a server and connects to it.
func connected(t *testing.T, q *scripted) (*beanstalk.Server, net.Listener, <-chan error, net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := beanstalk.New(q.options(t))
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return s, l, served, c
}

func TestShutdownEndsWaitsAndReturnsJobs(t *testing.T) {
	q := &scripted{wait: make(chan struct{}, 1)}
	s, l, served, c := connected(t, q)
	_, err := io.WriteString(c, "watch job\r\nignore default\r\nreserve\r\nwatch other\r\nignore job\r\nreserve\r\n")
	require.NoError(t, err)
	<-q.wait
	idle, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer idle.Close()
	require.NoError(t, s.Shutdown(context.Background()))
	require.ErrorIs(t, <-served, beanstalk.ErrClosed)
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(got), "WATCHING 2\r\nWATCHING 1\r\n"), "a reserve without end was answered: %q", got)
	require.Len(t, q.asked(), 1)
	require.True(t, q.asked()[0][0].GetRelease().Returned)
	require.ErrorIs(t, s.Serve(l), beanstalk.ErrClosed)
}

// A client that does not read blocks a write. The end of Shutdown's context closes its
// connection.
func TestShutdownDoesNotWaitForAClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	q := &scripted{}
	s, _, served, c := connected(t, q)
	// Send until the server reads nothing for a while: then it is blocked in a write. A
	// single pause could be due to a busy machine.
	more := []byte(strings.Repeat("list-tubes\r\n", 1000))
	for still := 0; still < 5; {
		require.NoError(t, c.SetWriteDeadline(time.Now().Add(300*time.Millisecond)))
		n, err := c.Write(more)
		if still++; err == nil || n > 0 {
			still = 0
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Shutdown(ctx), context.DeadlineExceeded)
	<-served
}
