package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

func TestThePaceOfAdvances(t *testing.T) {
	pause := advancePause.Milliseconds()
	for name, c := range map[string]struct{ last, due, wanted, now, next int64 }{
		"nothing is due":                           {1000, 0, 0, 1001, 0},
		"the first one":                            {0, 1000, 0, 1001, 1000},
		"nobody waits":                             {1000, 1001, 0, 1001, 1000 + pause},
		"nobody waits, and the pause is over":      {1000, 1000 + 2*pause, 0, 1001, 1000 + 2*pause},
		"somebody waits for what is due":           {1000, 1001, 1001, 1001, 1001},
		"somebody waits for what is due later":     {1000, 1001, 1005, 1001, 1005},
		"somebody waits for what is due after all": {1000, 1001, 1900, 1001, 1000 + pause},
		"the clock was set back":                   {9000, 1001, 0, 1001, 1001},
	} {
		t.Run(name, func(t *testing.T) {
			var p pace
			p.last.Store(c.last)
			require.Equal(t, c.next, p.next(c.due, c.wanted, c.now))
		})
	}
}

// advanceTimes returns the times of the entries of a node's log that advance, in Unix ms.
func advanceTimes(t *testing.T, n *Node) (times []int64) {
	loggedOps(t, n, func(nowMS int64, op *jobpb.Op) {
		if op.GetAdvance() != nil {
			times = append(times, nowMS)
		}
	})
	return times
}

func TestWhatFallsDueWhileNobodyWaitsSharesAdvances(t *testing.T) {
	const jobs = 300
	c := newTestCluster(t, 1)
	n := c.nodes[0]
	var times []int64
	// A busy machine may add the jobs when they are all due, so that nothing is left to advance.
	for lead := 300 * time.Millisecond; len(times) == 0; lead *= 2 {
		start := time.Now().Add(lead).UnixMilli()
		var adds []*jobpb.Op // in one entry, so that it is there before they fall due
		for i := range int64(jobs) {
			adds = append(adds, &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Topic: "t", DueMs: start + i, TtrMs: 60_000}}})
		}
		do(t, n, adds...)
		c.eventually(func() bool { return n.shard.machine.NextDue() == 0 }, "all jobs are ready")
		times = advanceTimes(t, n)
	}
	span := times[len(times)-1] - times[0]
	require.LessOrEqual(t, int64(len(times)), span/advancePause.Milliseconds()+3)
}
