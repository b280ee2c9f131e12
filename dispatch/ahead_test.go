package dispatch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

func TestWhatIsClaimedAheadIsNotClaimedAgain(t *testing.T) {
	s := newShard(10)
	require.Zero(t, s.d.NextDue(), "nobody waits")
	s.addWaiter(1, "t")
	s.addWaiter(1, "t")
	s.addWaiter(1, "t")
	s.d.Update([]Update{{Topic: "t", NextDue: 100, Soon: []int64{100, 101, 101, 105}}})
	require.EqualValues(t, 100, s.d.NextDue())
	first, _ := s.d.ClaimAhead(100)
	require.Len(t, first, 1)
	require.EqualValues(t, 101, s.d.NextDue())
	again, done := s.d.ClaimAhead(100)
	require.Nil(t, done)
	require.Empty(t, again)
	second, _ := s.d.ClaimAhead(101)
	require.Len(t, second, 2)
	require.Zero(t, s.d.NextDue(), "nobody waits any more")
}

func TestWhatWasDroppedAheadIsClaimedAgain(t *testing.T) {
	s := newShard(10)
	_, g := s.addWaiter(1, "t")
	s.d.Update([]Update{{Topic: "t", NextDue: 100, Soon: []int64{100}}})
	_, done := s.d.ClaimAhead(100)
	require.Zero(t, s.d.NextDue())
	done([]*jobpb.Result{{}}, nil)
	require.Empty(t, g.jobs)
	require.EqualValues(t, 100, s.d.NextDue())
	reserves, done := s.d.ClaimAhead(100)
	require.Equal(t, []string{"t"}, reserves[0].Topics)
	done([]*jobpb.Result{{Jobs: []*jobpb.Reserved{{Topic: "t", Seq: 1}}}}, nil)
	require.Len(t, g.jobs, 1)
	require.Zero(t, s.d.Waiting())
}

func TestAnAdvanceThatIsNotAheadTakesOnlyWhatIsUnclaimed(t *testing.T) {
	s := newShard(10)
	for range 3 {
		s.addWaiter(1, "t")
	}
	s.d.Update([]Update{{Topic: "t", NextDue: 100, Soon: []int64{100, 101}}})
	_, done := s.d.ClaimAhead(100)
	require.NotNil(t, done)
	ops, _ := s.d.Claim(101)
	require.Len(t, ops, 1)
}
