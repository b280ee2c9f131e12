package dispatch

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// Consumers of request and reply wait on one common topic and on one of their own, which
// nobody else ever names.
func TestUnusedTopicsAreForgotten(t *testing.T) {
	s := newShard(1000)
	for i := range 1000 {
		s.addWaiter(1, "work", fmt.Sprint("reply-", i))
		s.add("work", 1)
		s.settle()
	}
	require.Zero(t, s.d.Waiting())
	require.Empty(t, s.d.topics)
}

func TestTopicsOfAnEndedWaiterAreForgotten(t *testing.T) {
	s := newShard(10)
	w, _ := s.addWaiter(1, "work", "reply")
	s.add("work", 1)
	s.ready["work"] = 0 // deleted between the update and the reserve
	s.settle()
	s.add("reply", 1)
	s.ready["reply"] = 0
	s.settle()
	s.d.Cancel(w, false)
	require.Empty(t, s.d.topics)
}

func TestAReserveNamesOnlyTopicsThatHaveJobs(t *testing.T) {
	s := newShard(10)
	w, _ := s.addWaiter(2, "a", "b", "c", "d")
	s.d.Update([]Update{{Topic: "b", Ready: 1}, {Topic: "d", Ready: 1}, {Topic: "c", NextDue: 100}})
	require.Len(t, s.pending, 1)
	require.Equal(t, []string{"b", "d"}, s.pending[0].ops[0].GetReserve().Topics)
	require.Equal(t, []string{"a", "b", "c", "d"}, w.Reserve.Topics, "what the consumer asked for stays")
}

func TestAClaimNamesOnlyTopicsThatHaveJobsByThen(t *testing.T) {
	s := newShard(10)
	s.addWaiter(2, "a", "b", "c", "d")
	s.d.Update([]Update{{Topic: "b", NextDue: 100}, {Topic: "c", NextDue: 101}, {Topic: "d", NextDue: 99}})
	ops, _ := s.d.Claim(100)
	require.Len(t, ops, 1)
	require.Equal(t, []string{"b", "d"}, ops[0].GetReserve().Topics)
}

// A waiter must get a topic that changed while its Reserve was in flight.
func TestARequeuedWaiterIsInAllItsQueues(t *testing.T) {
	s := newShard(10)
	_, g := s.addWaiter(1, "a", "b")
	s.add("a", 1)
	s.ready["a"] = 0
	s.add("b", 1) // while the Reserve that names only a is under way
	s.settle()
	require.Len(t, g.jobs, 1)
	require.Equal(t, "b", g.jobs[0].Topic)
}

func longNames() []string {
	topics := make([]string, job.MaxReserveTopics)
	for i := range topics {
		topics[i] = fmt.Sprintf("%0*d", job.MaxNameBytes, i)
	}
	return topics
}

func sizeOf(ops []*jobpb.Op) (size int) {
	for _, op := range ops {
		size += oplog.OpSize(op)
	}
	return size
}

// most is the largest submission: the bound, exceeded by at most one operation.
const most = maxBytesPerMatch + job.MaxReserveTopics*(job.MaxNameBytes+8)

func TestSubmissionsAreBoundedByBytes(t *testing.T) {
	topics := longNames()
	var ready, due []Update
	for _, name := range topics {
		ready = append(ready, Update{Topic: name, Ready: 1})
		due = append(due, Update{Topic: name, NextDue: 100})
	}
	t.Run("reserves", func(t *testing.T) {
		s := newShard(10_000)
		for range 100 {
			s.addWaiter(1, topics...)
		}
		s.d.Update(ready)
		ops := 0
		for _, p := range s.pending {
			require.LessOrEqual(t, sizeOf(p.ops), most)
			ops += len(p.ops)
		}
		require.Equal(t, 100, ops)
	})
	t.Run("with an Advance", func(t *testing.T) {
		s := newShard(10_000)
		for range 100 {
			s.addWaiter(1, topics...)
		}
		s.d.Update(due)
		total := 0
		for range 100 {
			ops, _ := s.d.Claim(100)
			require.NotEmpty(t, ops)
			require.LessOrEqual(t, sizeOf(ops), most)
			if total += len(ops); total == 100 {
				return
			}
		}
	})
	t.Run("jobs that go back", func(t *testing.T) {
		s := newShard(10_000)
		var ws []*Waiter
		for range 20 {
			w, _ := s.addWaiter(1000, "t")
			ws = append(ws, w)
		}
		s.d.Update([]Update{{Topic: "t", Ready: 1 << 20}})
		for _, w := range ws {
			s.d.Cancel(w, false)
		}
		jobs := make([]*jobpb.Reserved, 1000)
		for i := range jobs {
			jobs[i] = &jobpb.Reserved{Id: topics[i], Seq: uint64(i), TtrMs: job.MaxTTR.Milliseconds()}
		}
		first := s.pending[0]
		s.pending = nil
		rs := make([]*jobpb.Result, len(first.ops))
		for i := range rs {
			rs[i] = &jobpb.Result{Jobs: jobs}
		}
		first.done(rs, nil)
		back := 0
		for _, p := range s.pending {
			require.LessOrEqual(t, sizeOf(p.ops), most)
			back += len(p.ops)
		}
		require.Equal(t, 1000*len(rs), back)
	})
}
