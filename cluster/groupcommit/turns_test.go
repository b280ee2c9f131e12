package groupcommit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/testseed"
)

func of(tenant string, size int) *Request {
	return &Request{Tenant: tenant, Ops: make([]byte, size), Count: 1, Callers: 1, HoldUntil: time.Unix(9, 0), Deadline: time.Unix(9, 0)}
}

// batch takes the next batch.
func (q *turns) batch(most int) (rs []*Request) {
	q.take(most, func(r *Request) { rs = append(rs, r) })
	return rs
}

// bytesOf sums the operations by tenant.
func bytesOf(rs []*Request) map[string]int {
	sums := map[string]int{}
	for _, r := range rs {
		sums[r.Tenant] += len(r.Ops)
	}
	return sums
}

func TestWhatOneTenantQueuesDoesNotDelayAnother(t *testing.T) {
	var q turns
	for range 10_000 {
		q.add(of("loud", 100))
	}
	for range 10 {
		q.add(of("quiet", 100))
		q.add(of("", 100))
	}
	first := bytesOf(q.batch(MaxBatchBytes))
	require.Equal(t, 1000, first["quiet"], "all of it is in the next batch")
	require.Equal(t, 1000, first[""], "that of nobody too")
	require.Greater(t, first["loud"], MaxBatchBytes-3000, "and the batch is full")
}

func TestTenantsShareAFullBatchByBytes(t *testing.T) {
	var q turns
	for range 3000 {
		q.add(of("small", 100))
		q.add(of("", 300))
	}
	for range 100 {
		q.add(of("large", 20_000))
	}
	shares := bytesOf(q.batch(MaxBatchBytes))
	for tenant, bytes := range shares {
		require.InDelta(t, MaxBatchBytes/3, bytes, 20_000+turnBytes, tenant)
	}
	require.Len(t, shares, 3)
}

// A turn that a batch has cut goes on in the next: none is passed over.
func TestOverManyBatchesTheSharesAreEqual(t *testing.T) {
	var q turns
	for range 4000 {
		q.add(of("a", 1000))
		q.add(of("b", 1000))
		q.add(of("c", 1000))
	}
	sums := map[string]int{}
	for range 200 {
		for tenant, bytes := range bytesOf(q.batch(5000)) {
			sums[tenant] += bytes
		}
	}
	for tenant, bytes := range sums {
		require.InDelta(t, 200*5000/3, bytes, turnBytes, tenant)
	}
}

func TestARequestThatIsLargerThanABatchGoesAlone(t *testing.T) {
	var q turns
	q.add(of("a", 1))
	q.add(of("b", 2*MaxBatchBytes))
	q.add(of("a", 1))
	var sizes []int
	for q.requests > 0 {
		sum := 0
		for _, r := range q.batch(MaxBatchBytes) {
			sum += len(r.Ops)
		}
		sizes = append(sizes, sum)
	}
	require.Contains(t, sizes, 2*MaxBatchBytes)
}

func TestALoudTenantDoesNotShutOthersOut(t *testing.T) {
	var q turns
	for range MaxQueuedBytes / MaxEntryBytes {
		r := of("loud", MaxEntryBytes)
		require.False(t, q.full(r))
		q.add(r)
	}
	require.True(t, q.full(of("loud", 1)))
	for _, quiet := range []string{"quiet", ""} { // what has no tenant is one more
		for range littleRequests {
			r := of(quiet, 1)
			require.False(t, q.full(r))
			q.add(r)
		}
		require.True(t, q.full(of(quiet, 1)), "only of what is little")
	}
	require.True(t, q.full(of("other", littleBytes+1)))
	for i := range maxQueuedRequests {
		r := of(fmt.Sprint(i), littleBytes)
		if q.full(r) {
			break
		}
		q.add(r)
	}
	require.LessOrEqual(t, q.bytes, 2*MaxQueuedBytes, "and all together are bounded")
	require.Greater(t, q.bytes, 2*MaxQueuedBytes-littleBytes-1)
}

func TestTheQueueOfOneTenantIsBounded(t *testing.T) {
	var q turns
	for range MaxQueuedBytes / MaxEntryBytes {
		q.add(of("", MaxEntryBytes))
	}
	require.True(t, q.full(of("", 1)))
}

// Without tenants the queue costs what a slice does.
func TestWithoutTenantsNothingMoreIsAllocated(t *testing.T) {
	var q turns
	rs := make([]*Request, 100)
	for i := range rs {
		rs[i] = of("", 10)
	}
	work := func() {
		for _, r := range rs {
			q.add(r)
		}
		q.take(MaxBatchBytes, func(*Request) {})
	}
	work()
	require.Zero(t, testing.AllocsPerRun(100, work))
}

// At random: each tenant's requests leave in the order of arrival, once, and the sums are right.
func TestTurnsKeepTheOrderOfEachTenant(t *testing.T) {
	seed := testseed.New()
	t.Logf("TEST_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var q turns
	waiting := map[string][]*Request{}
	arrived := 0
	for range 5000 {
		switch rng.IntN(8) {
		case 0:
			taken := q.batch(1 + rng.IntN(30_000))
			for _, r := range taken {
				require.Same(t, waiting[r.Tenant][0], r)
				waiting[r.Tenant] = waiting[r.Tenant][1:]
			}
			if rng.IntN(3) == 0 {
				q.putBack(taken)
				for i := len(taken) - 1; i >= 0; i-- {
					waiting[taken[i].Tenant] = append([]*Request{taken[i]}, waiting[taken[i].Tenant]...)
				}
			}
		case 1:
			if rng.IntN(10) == 0 {
				now := time.Unix(0, int64(rng.IntN(arrived+1)))
				gone := q.removeOverdue(now)
				for _, r := range gone {
					require.Same(t, waiting[r.Tenant][0], r)
					waiting[r.Tenant] = waiting[r.Tenant][1:]
				}
			}
		default:
			arrived++
			r := of([]string{"", "a", "b", "c", "d"}[rng.IntN(5)], rng.IntN(3000))
			r.Deadline = time.Unix(0, int64(arrived))
			q.add(r)
			waiting[r.Tenant] = append(waiting[r.Tenant], r)
		}
		checkTurns(t, &q, waiting)
	}
	require.Len(t, q.remove(func(*Request) bool { return true }), func() (n int) {
		for _, rs := range waiting {
			n += len(rs)
		}
		return n
	}())
	checkTurns(t, &q, nil)
	require.Empty(t, q.lanes, "nothing is kept of tenants without requests")
}

func checkTurns(t *testing.T, q *turns, waiting map[string][]*Request) {
	t.Helper()
	lanes, requests, bytes := 0, 0, 0
	q.each(func(l *lane) {
		lanes++
		require.Equal(t, len(waiting[l.tenant]), len(l.waiting()))
		sum := 0
		for i, r := range l.waiting() {
			require.Same(t, waiting[l.tenant][i], r)
			sum += len(r.Ops)
		}
		require.Equal(t, sum, l.bytes)
		require.Same(t, l, l.next.prev)
		requests += len(l.waiting())
		bytes += sum
	})
	for _, rs := range waiting {
		if len(rs) > 0 {
			lanes--
		}
	}
	require.Zero(t, lanes, "exactly the tenants with requests are in the ring")
	require.Equal(t, []int{requests, bytes, requests}, []int{q.requests, q.bytes, q.callers})
}
