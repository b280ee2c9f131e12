package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api"
	"tarry/job"
	"tarry/job/jobpb"
)

var _ api.Queue = (*Shard)(nil)

func TestReadsOnAFollowerSeeAcknowledgedWrites(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	via := c.follower()
	rs := do(t, via, add("late", "t", 2*time.Hour), add("soon", "t", time.Hour), add("", "t", 0), add("gone", "t", time.Hour))
	seq := func(i int) uint64 { return rs[i].Seq }
	do(t, via, &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: &jobpb.Ref{Seq: seq(3)}}}})

	heads := []struct {
		name  string
		topic string
		state jobpb.State
		want  uint64 // seq; 0: there is none
		code  job.Code
	}{
		{"ready", "t", jobpb.State_STATE_READY, seq(2), ""},
		{"earliest delayed", "t", jobpb.State_STATE_DELAYED, seq(1), ""},
		{"no dead", "t", jobpb.State_STATE_DEAD, 0, job.CodeNotFound},
		{"no such topic", "u", jobpb.State_STATE_READY, 0, job.CodeNotFound},
		{"not a list to peek at", "t", jobpb.State_STATE_RESERVED, 0, job.CodeInvalid},
		{"no state", "t", jobpb.State_STATE_NONE, 0, job.CodeInvalid},
	}
	for _, h := range heads {
		t.Run(h.name, func(t *testing.T) {
			j, err := via.shard.Peek(context.Background(), h.topic, h.state, false)
			if h.want == 0 {
				require.Equal(t, h.code, job.CodeOf(err), "%v", err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, h.want, j.Seq)
		})
	}

	j, err := via.shard.JobBySeq(context.Background(), seq(0), false)
	require.NoError(t, err)
	require.Equal(t, "late", j.Id)
	require.Equal(t, "body of late", string(j.Body))
	for _, none := range []uint64{0, seq(3), 1 << 60} {
		_, err = via.shard.JobBySeq(context.Background(), none, false)
		require.Equal(t, job.CodeNotFound, job.CodeOf(err), "%v", err)
	}

	// A stale read is served by the follower alone, which has to catch up first.
	c.eventually(func() bool {
		j, err := via.shard.Peek(context.Background(), "t", jobpb.State_STATE_READY, true)
		return err == nil && j.Seq == seq(2)
	}, "the follower has applied the adds")
	j, err = via.shard.JobBySeq(context.Background(), seq(1), true)
	require.NoError(t, err)
	require.Equal(t, "soon", j.Id)
}

func TestAListingOnAFollowerSeesAcknowledgedWrites(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3)
	via := c.follower()
	do(t, via, add("late", "t", 2*time.Hour), add("soon", "t", time.Hour), add("ready", "t", 0), add("other", "u", 0))
	q := &jobpb.JobQuery{Topic: "t", Max: 2}
	var got []string
	for range 2 {
		page, err := via.shard.Jobs(context.Background(), q, false)
		require.NoError(t, err)
		for _, j := range page.Jobs {
			got = append(got, j.Id)
		}
		q.After = page.Next
	}
	require.Equal(t, []string{"soon", "late", "ready"}, got)
	require.Nil(t, q.After)
	page, err := via.shard.Jobs(context.Background(), &jobpb.JobQuery{Topic: "none", Max: 1}, false)
	require.NoError(t, err)
	require.Empty(t, page.Jobs)
	_, err = via.shard.Jobs(context.Background(), &jobpb.JobQuery{Topic: "t"}, false)
	require.Equal(t, job.CodeInvalid, job.CodeOf(err), "refused at once, not asked for again")
}

// The dispatcher does not know pauses: the changes that the state machine reports must keep
// waiters waiting, and wake them when the pause ends.
func TestWaiterGetsItsJobWhenThePauseEnds(t *testing.T) {
	t.Parallel()
	pause := func(ms int64) *jobpb.Op {
		return &jobpb.Op{Kind: &jobpb.Op_PauseTopic{PauseTopic: &jobpb.PauseTopic{Topic: "t", PauseMs: ms}}}
	}
	ends := []struct {
		name   string
		length int64 // ms
		resume bool
	}{
		{"by itself", 300, false},
		{"by hand", 3_600_000, true},
	}
	for _, e := range ends {
		t.Run(e.name, func(t *testing.T) {
			c := newTestCluster(t, 1)
			c.leader()
			n := c.nodes[0]
			do(t, n, add("a", "t", 0), pause(e.length))
			topic, err := n.shard.Topic(context.Background(), "t", false)
			require.NoError(t, err)
			got := make(chan []*jobpb.Reserved, 1)
			go func() {
				jobs, _ := n.shard.Reserve(context.Background(), &jobpb.Reserve{Topics: []string{"t"}, Max: 1}, 30*time.Second)
				got <- jobs
			}()
			c.eventually(func() bool { return n.shard.dispatcher().Waiting() == 1 || len(got) > 0 }, "the waiter waits")
			if e.resume {
				require.Empty(t, got, "the topic is paused")
				do(t, n, pause(0))
			}
			jobs := <-got
			require.Len(t, jobs, 1)
			if !e.resume {
				require.GreaterOrEqual(t, n.shard.machine.Applied().ClockMS, topic.PausedUntilMs)
			}
		})
	}
}

// A search by a header reads all jobs that have it, also those that the rest of the filter
// leaves out.
func TestJobsThatListingsReadAreCounted(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1)
	n := c.nodes[0]
	do(t, n, &jobpb.Op{Kind: &jobpb.Op_SetTopic{SetTopic: &jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{IndexHeaders: []string{"h"}}}}})
	for range 5 {
		op := add("", "t", 0)
		op.GetAdd().Options = &jobpb.JobOptions{Headers: []*jobpb.Header{{Name: "h", Value: "v"}}}
		do(t, n, op)
	}
	headers := []*jobpb.Header{{Name: "h", Value: "v"}}
	for _, q := range []*jobpb.JobQuery{
		{ByHeader: true, State: jobpb.State_STATE_DEAD, Filter: &jobpb.Filter{Headers: headers}, Max: 10},
		{Topic: "t", Max: 2},
		{Filter: &jobpb.Filter{IdPrefix: "none"}, Max: 10},
	} {
		_, err := n.shard.Jobs(t.Context(), q, false)
		require.NoError(t, err)
	}
	families, err := n.Metrics().Gather()
	require.NoError(t, err)
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "tarry_listing_examined_total" {
			continue
		}
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if l.GetName() == "by" {
					got[l.GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
	}
	require.Equal(t, map[string]float64{"header": 5, "topic": 2, "id": 0}, got)
}
