package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/rates"
	"tarry/job"
)

// A node that was down has the same counts as the others in the steps that it missed.
func TestEveryNodeHasTheRates(t *testing.T) {
	c := newTestCluster(t, 3)
	n := c.nodes[c.leader()]
	do(t, n, add("a", "mail", 0), add("b", "mail", time.Hour), add("c", "work", 0))
	c.eventually(func() bool {
		for _, n := range c.nodes {
			if n.shard.Rates("mail").Sum(rates.Steps)[job.TopicAdded] != 2 {
				return false
			}
		}
		return true
	}, "all nodes count")
	down := (c.leader() + 1) % 3
	c.stop(down)
	for i := range 5 {
		do(t, c.nodes[c.leader()], add(fmt.Sprint("d", i), "mail", 0))
	}
	jobs := reserveOne(t, c.nodes[c.leader()], 0, "mail")
	require.Len(t, jobs, 1)
	do(t, c.nodes[c.leader()], finish(jobs[0]))
	want := job.TopicEvents{job.TopicAdded: 5, job.TopicDelivered: 1, job.TopicFinished: 1}
	back := c.start(down)
	c.eventually(func() bool { return back.shard.TotalRates().Sum(rates.Steps) == want }, "it counts what it missed")
	require.Equal(t, want, back.shard.Rates("mail").Sum(rates.Steps))
	want.Add(&job.TopicEvents{job.TopicAdded: 3})
	require.Equal(t, want, c.nodes[c.leader()].shard.TotalRates().Sum(rates.Steps))
}
