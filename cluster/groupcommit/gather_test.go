package groupcommit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestABatchWaitsForTheCallersOfTheLast(t *testing.T) {
	const took = time.Millisecond
	for name, tt := range map[string]struct {
		last      int           // callers of the last batch
		waited    int           // callers that waited when it ended
		elsewhere bool          // the leader is another node
		idle      time.Duration // since its end
		came      []int         // callers of the requests that come one after the other
		bytes     int           // of each of them
		waits     time.Duration
		sent      int // callers of the next batch
	}{
		"callers return":               {last: 16, came: []int{1, 10, 1, 1}, bytes: 10, waits: 0, sent: 12},
		"one waited already":           {last: 1, waited: 1, came: []int{1}, bytes: 10, sent: 2},
		"and the other is not back":    {last: 1, waited: 1, bytes: 10, waits: took / gatherShare, sent: 1},
		"some do not":                  {last: 16, came: []int{1, 1, 1}, bytes: 10, waits: took / gatherShare, sent: 3},
		"after a pause":                {last: 16, idle: soon + 1, came: []int{1}, bytes: 10, sent: 1},
		"there was one":                {last: 1, came: []int{1}, bytes: 10, sent: 1},
		"a consumer and a producer":    {last: 2, came: []int{1, 1}, bytes: 10, sent: 2},
		"one of the two":               {last: 2, came: []int{1}, bytes: 10, waits: took / gatherShare, sent: 1},
		"what came is large":           {last: 16, came: []int{1}, bytes: largeBatch, sent: 1},
		"the leader, not a follower":   {last: 16, elsewhere: true, came: []int{1}, bytes: 10, sent: 1},
		"more came than there were":    {last: 8, came: []int{40}, bytes: 10, sent: 40},
		"a large one ends the waiting": {last: 400, came: []int{1, 1}, bytes: largeBatch / 2, sent: 2},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, true, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
				f.elsewhere = tt.elsewhere
				send(tt.last, 10)
				time.Sleep(took)
				if tt.waited > 0 {
					send(tt.waited, 10)
				}
				f.pop(t).complete(results(0, tt.last), nil)
				synctest.Wait()
				time.Sleep(tt.idle)
				began := time.Now()
				for _, ops := range tt.came {
					send(ops, tt.bytes)
				}
				for f.waiting() == 0 {
					time.Sleep(took / 100)
					synctest.Wait()
				}
				waited := time.Since(began).Truncate(took / 50)
				next := f.pop(t)
				next.complete(results(0, next.b.Count), nil)
				synctest.Wait()
				require.Equal(t, tt.waits, waited)
				require.Equal(t, tt.sent, next.b.callers)
			})
		})
	}
}

func TestTheWaitForCallersIsBounded(t *testing.T) {
	inBubble(t, true, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		send(100, 10)
		time.Sleep(time.Second)
		f.pop(t).complete(results(0, 100), nil)
		synctest.Wait()
		send(1, 10)
		require.Zero(t, f.waiting())
		time.Sleep(gatherTime)
		synctest.Wait()
		require.Equal(t, 1, f.waiting())
	})
}

func TestWaitsInVainAreLeftOut(t *testing.T) {
	inBubble(t, true, func(t *testing.T, f *fakeLeader, send func(int, int) *reply) {
		// round lets a batch of two operations end, and then so many callers come back. It
		// reports whether the next batch waited for them.
		round := func(callers int) bool {
			send(2, 10)
			time.Sleep(gatherTime)
			f.pop(t).complete(results(0, 2), nil)
			synctest.Wait()
			send(1, 10)
			waited := f.waiting() == 0
			for range callers - 1 {
				send(1, 10)
			}
			time.Sleep(gatherTime)
			synctest.Wait()
			for f.waiting() > 0 {
				next := f.pop(t)
				next.complete(results(0, next.b.Count), nil)
				time.Sleep(soon + 1)
				synctest.Wait()
			}
			return waited
		}
		waited := func(rounds, callers int) (n int) {
			for range rounds {
				if round(callers) {
					n++
				}
			}
			return n
		}
		require.Equal(t, 20, waited(20, 2))
		require.Equal(t, 5, waited(1+1+3+7+15, 1), "twice as many are left out after each")
		require.LessOrEqual(t, waited(10*(maxSkipped+1), 1), 11)
		for range maxSkipped {
			round(2)
		}
		require.Equal(t, 10, waited(10, 2), "one that pays ends that")
	})
}
