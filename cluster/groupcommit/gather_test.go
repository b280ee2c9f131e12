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
		last      int           // operations of the last batch
		elsewhere bool          // the leader is another node
		idle      time.Duration // since its end
		came      []int         // sizes of the requests that come one after the other
		bytes     int           // of each of them
		waits     time.Duration
		sent      int // operations of the next batch
	}{
		"callers return":               {last: 16, came: []int{1, 10, 1, 1}, bytes: 10, waits: 0, sent: 12},
		"some do not":                  {last: 16, came: []int{1, 1, 1}, bytes: 10, waits: took / gatherShare, sent: 3},
		"after a pause":                {last: 16, idle: soon + 1, came: []int{1}, bytes: 10, sent: 1},
		"there were few":               {last: manyOps - 1, came: []int{1}, bytes: 10, sent: 1},
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
				require.Equal(t, tt.sent, next.b.Count)
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
