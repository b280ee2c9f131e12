package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/fsm/internal/record"
	"tarry/job/jobpb"
)

// expiring returns a rig whose topic t has a time of expiry of 100 ms.
func expiring(t *testing.T, expiry jobpb.Expiry) *rig {
	r := newRig(t, Options{bounds: bounds{windowCap: 4}})
	r.expireAfter(100, expiry)
	return r
}

func (r *rig) expireAfter(ms int64, expiry jobpb.Expiry) {
	r.t.Helper()
	s := &jobpb.TopicSettings{ExpireMs: ms, Expiry: expiry}
	require.Equal(r.t, jobpb.Code_OK, r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: s})).Code)
}

func TestExpiringListIsBuiltInSteps(t *testing.T) {
	r := newRig(t, Options{bounds: bounds{windowCap: 4}})
	for i := range 25 {
		r.one(opAdd(&jobpb.Add{Topic: "t", Priority: uint32(i % 3)}))
	}
	r.expireAfter(100, jobpb.Expiry_EXPIRY_DROP)
	listed := func() uint64 { return r.m.topics["t"].Counts[record.ListExpiring] }
	for _, want := range []uint64{10, 20} {
		require.True(t, r.one(opAdvance(10)).More)
		require.Equal(t, want, listed())
		r.reopen()
	}
	// New jobs may be on either side of what is indexed.
	r.do(opAdd(&jobpb.Add{Topic: "t", Priority: 0}), opAdd(&jobpb.Add{Topic: "t", Priority: 9}))
	require.EqualValues(t, 21, listed())
	require.False(t, r.one(opAdvance(10)).More)
	require.EqualValues(t, 27, listed())
	r.one(opAdd(&jobpb.Add{Topic: "t", Priority: 10}))
	require.EqualValues(t, 28, listed(), "from now on each is listed at once")
	r.now += 100
	r.one(opAdvance(100))
	require.EqualValues(t, 28, r.topic("t").Expired)
}

func TestListingStopsWhenExpiryIsUnset(t *testing.T) {
	r := expiring(t, jobpb.Expiry_EXPIRY_DROP)
	r.one(opAdd(&jobpb.Add{Id: "a", Topic: "t"}))
	r.one(opSettings(&jobpb.SetTopic{Topic: "t"}))
	r.do(opDelete(byID("a")), opAdd(&jobpb.Add{Id: "b", Topic: "t"}))
	require.Zero(t, r.m.topics["t"].Counts[record.ListExpiring])
	require.Len(t, r.m.topics["t"].Topic.Append(nil), record.TopicLen)
}

func TestRecordsWithoutExpiryHaveNoExpiryFields(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opAdd(&jobpb.Add{Topic: "t"}))
	require.Len(t, r.m.topics["t"].Topic.Append(nil), record.TopicLen)
	r.expireAfter(100, jobpb.Expiry_EXPIRY_DROP)
	r.one(opAdvance(10))
	require.Len(t, r.m.topics["t"].Topic.Append(nil), record.TopicLen+record.ExpiryLen)
}
