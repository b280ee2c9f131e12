package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// countedQueue counts the calls that enter the log.
type countedQueue struct {
	*apitest.Queue
	mu    sync.Mutex
	calls map[string]int
}

func (q *countedQueue) count(call string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls[call]++
}

func (q *countedQueue) Do(ctx context.Context, ops []*jobpb.Op) ([]*jobpb.Result, error) {
	q.count(string(oplog.KindOf(ops[0])))
	return q.Queue.Do(ctx, ops)
}

func (q *countedQueue) Reserve(ctx context.Context, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error) {
	jobs, err := q.Queue.Reserve(ctx, r, wait)
	if len(jobs) > 0 {
		q.count("reserve")
	}
	return jobs, err
}

func (q *countedQueue) FinishAndReserve(ctx context.Context, f []*jobpb.Finish, r *jobpb.Reserve, waits bool) ([]*jobpb.Result, []*jobpb.Reserved, error) {
	q.count("finish and reserve")
	return q.Queue.FinishAndReserve(ctx, f, r, waits)
}

// refillRig serves streams of a queue, and looks at their refills.
type refillRig struct {
	*streamRig
	served *server
}

func newRefillRig(t *testing.T, in *apitest.Queue, q Queue) *refillRig {
	v := newServer(Options{Queue: q, Operator: &apitest.Operator{}, Hosts: []string{"example.com"}})
	r := &streamRig{rig: &rig{t: t, queue: in, handler: v.root()}}
	r.server = httptest.NewServer(r.handler)
	t.Cleanup(r.server.Close)
	return &refillRig{r, v}
}

// full waits until the stream that holds a job waits for its end.
func (r *refillRig) full(token string) {
	r.t.Helper()
	held, err := job.ParseToken(token)
	require.NoError(r.t, err)
	require.Eventually(r.t, func() bool {
		r.served.refills.mu.Lock()
		defer r.served.refills.mu.Unlock()
		f := r.served.refills.streams[held]
		return f != nil && f.room > 0
	}, soon, time.Millisecond)
}

func (r *streamRig) adds(jobs int) {
	for n := range jobs {
		r.add(fmt.Sprint("j", n), `"x"`)
	}
}

func TestAFinishReservesTheNextJobOfItsStream(t *testing.T) {
	for _, credit := range []int{1, 3} {
		t.Run(fmt.Sprint("credit ", credit), func(t *testing.T) {
			q := &countedQueue{Queue: apitest.New(t), calls: map[string]int{}}
			r := newRefillRig(t, q.Queue, q)
			const jobs = 20
			r.adds(jobs)
			s := r.open(fmt.Sprint("topics=t&credit=", credit)).opened()
			var held []map[string]any
			for range credit {
				held = append(held, s.next())
			}
			for n := range jobs {
				e := held[n]
				if n <= jobs-credit { // a job was ready at the last finish
					r.full(e["token"].(string))
				}
				r.ok("/v1/jobs/"+e["id"].(string)+"/finish", fmt.Sprintf(`{"token":%q}`, e["token"]))
				if len(held) < jobs {
					held = append(held, s.next())
				}
			}
			q.mu.Lock()
			defer q.mu.Unlock()
			require.GreaterOrEqual(t, q.calls["finish and reserve"], jobs-credit)
			require.Equal(t, jobs, q.calls["finish and reserve"]+q.calls["finish"])
			require.LessOrEqual(t, q.calls["reserve"], credit, "the stream reserves its first jobs only")
		})
	}
}

func TestAStreamThatIsRefilledKeepsItsCreditAndItsMaximum(t *testing.T) {
	r := newStreamRig(t)
	const jobs, credit, most = 60, 4, 50
	r.adds(jobs)
	s := r.open(fmt.Sprint("topics=t&credit=", credit, "&max=", most)).opened()
	var held []map[string]any
	for given := range most {
		for len(held) == credit || len(held) > 0 && given%7 == 0 {
			r.ok("/v1/jobs/"+held[0]["id"].(string)+"/finish", fmt.Sprintf(`{"token":%q}`, held[0]["token"]))
			held = held[1:]
		}
		held = append(held, s.next())
		stats := decoded(t, r.do("GET", "/v1/stats", ""))
		require.LessOrEqual(t, stats["reserved"], float64(credit))
	}
	require.Equal(t, map[string]any{"event": "bye", "reason": "max reached"}, s.next())
	stats := decoded(t, r.do("GET", "/v1/stats", ""))
	require.EqualValues(t, jobs-most, stats["ready"], "nothing was reserved beyond the maximum")
}

func tokenNo(n int) job.Token { return job.Token{Seq: uint64(n), Generation: 1} }

func reservedJobs(ids ...string) (jobs []*jobpb.Reserved) {
	for _, id := range ids {
		jobs = append(jobs, &jobpb.Reserved{Id: id})
	}
	return jobs
}

func TestOnlyAFullStreamIsRefilled(t *testing.T) {
	all := newRefills()
	f := all.add(nil)
	f.hold([]job.Token{tokenNo(1), tokenNo(2), tokenNo(3)})
	require.Nil(t, all.begin(tokenNo(1)), "nobody has said that the stream is full")
	_, free := f.take(1, 10)
	require.EqualValues(t, 1, free)
	require.Nil(t, all.begin(tokenNo(1)), "the stream reserves itself")

	_, free = f.take(0, 2)
	require.Zero(t, free)
	require.Same(t, f, all.begin(tokenNo(1)))
	require.Nil(t, all.begin(tokenNo(1)), "a job is finished once")
	require.Nil(t, all.begin(tokenNo(4)), "a job of nobody")
	require.Same(t, f, all.begin(tokenNo(2)))
	require.Nil(t, all.begin(tokenNo(3)), "two are left of the maximum")

	// Their reservations have ended, but their places are taken.
	_, free = f.take(2, 2)
	require.Zero(t, free)
	require.Empty(t, f.end(reservedJobs("a")))
	require.Empty(t, f.end(nil))
	jobs, _ := f.take(2, 2)
	require.Equal(t, reservedJobs("a"), jobs)
	_, free = f.take(1, 1)
	require.EqualValues(t, 1, free, "the finish that found nothing leaves its place")
}

func TestAStreamThatHasEndedTakesNoJob(t *testing.T) {
	all := newRefills()
	f := all.add(nil)
	f.hold([]job.Token{tokenNo(1), tokenNo(2), tokenNo(3)})
	f.take(0, 10)
	require.NotNil(t, all.begin(tokenNo(1)))
	require.NotNil(t, all.begin(tokenNo(2)))
	require.Empty(t, f.end(reservedJobs("a")))
	require.Equal(t, reservedJobs("a"), f.close(map[job.Token]struct{}{tokenNo(3): {}}))
	require.Equal(t, reservedJobs("b"), f.end(reservedJobs("b")))
	require.Nil(t, all.begin(tokenNo(3)))
	require.Empty(t, all.streams)
}

// The queue fails the finish and hands a job out all the same.
type failingFinish struct{ *apitest.Queue }

func (q failingFinish) FinishAndReserve(ctx context.Context, f []*jobpb.Finish, r *jobpb.Reserve, waits bool) ([]*jobpb.Result, []*jobpb.Reserved, error) {
	f[0].Ref.Generation++ // a reservation that nobody has
	return q.Queue.FinishAndReserve(ctx, f, r, waits)
}

func TestAFinishThatFailsLeavesItsStreamAsItIs(t *testing.T) {
	q := failingFinish{apitest.New(t)}
	r := newRefillRig(t, q.Queue, q)
	r.adds(2)
	s := r.open("topics=t&credit=1").opened()
	e := s.next()
	r.full(e["token"].(string))

	w := r.post("/v1/jobs/j0/finish", fmt.Sprintf(`{"token":%q}`, e["token"]))
	require.Equal(t, http.StatusConflict, w.Code)
	other, err := q.Job(t.Context(), "j1", false)
	require.NoError(t, err)
	require.Equal(t, []any{jobpb.State_STATE_READY, uint32(0)}, []any{other.State, other.Attempts}, "it went back")

	// The second finish is not one for the stream; then it reserves by itself.
	r.ok("/v1/jobs/j0/finish", fmt.Sprintf(`{"token":%q}`, e["token"]))
	require.Equal(t, "j1", s.job())
}
