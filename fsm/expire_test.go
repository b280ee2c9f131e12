package fsm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// expiring is a rig whose topic t has a time of expiry of 100 ms.
func expiring(t *testing.T, expiry jobpb.Expiry) *rig {
	r := newRig(t, Options{windowCap: 4})
	r.expireAfter(100, expiry)
	return r
}

func (r *rig) expireAfter(ms int64, expiry jobpb.Expiry) {
	r.t.Helper()
	s := &jobpb.TopicSettings{ExpireMs: ms, Expiry: expiry}
	require.Equal(r.t, jobpb.Code_OK, r.one(opSettings(&jobpb.SetTopic{Topic: "t", Settings: s})).Code)
}

func TestAJobThatNobodyTookInTimeIsDropped(t *testing.T) {
	r := expiring(t, jobpb.Expiry_EXPIRY_DROP)
	added := r.one(opAdd(&jobpb.Add{Id: "a", Topic: "t", DelayMs: 50}))
	require.EqualValues(t, rigStart+150, r.job(added.Seq).ExpiresMs)
	r.now = rigStart + 149
	r.one(opAdvance(10))
	require.Equal(t, jobpb.State_STATE_READY, r.job(added.Seq).State)
	require.EqualValues(t, rigStart+150, r.m.NextDue(), "it vanishes though nobody reserves")
	r.reopen()
	require.EqualValues(t, rigStart+150, r.m.NextDue())
	r.now++
	require.EqualValues(t, 1, r.one(opAdvance(10)).Count)
	require.Nil(t, r.job(added.Seq))
	topic := r.topic("t")
	require.Equal(t, []uint64{1, 0, 0}, []uint64{topic.Expired, topic.Deleted, topic.Ready})
}

func TestAnExpiredJobMayDieInstead(t *testing.T) {
	r := expiring(t, jobpb.Expiry_EXPIRY_DEAD)
	r.one(opAdd(&jobpb.Add{Id: "a", Topic: "t"}))
	r.now += 100
	r.one(opAdvance(10))
	j := r.job(1)
	require.Equal(t, jobpb.State_STATE_DEAD, j.State)
	require.Equal(t, "expired", j.Reason)
	require.Zero(t, j.ExpiresMs)
	require.EqualValues(t, 1, r.topic("t").Died)
	r.now += 5000
	require.Equal(t, r.now, r.one(opKick(byID("a"))).DueMs, "a kick gives it a new time")
	r.now += 99
	require.Len(t, r.do(opAdvance(10), opReserve(1, "t"))[1].Jobs, 1)
	r.do(opBury(&jobpb.Bury{Ref: byID("a")}))
	r.now += 5000
	require.Len(t, r.one(opReserveJob(byID("a"), 0)).Jobs, 1)
	require.Equal(t, jobpb.State_STATE_READY, r.one(opRelease(&jobpb.Release{Ref: byID("a")})).State)
	require.Len(t, r.do(opAdvance(10), opReserve(1, "t"))[1].Jobs, 1, "and so does a reserve by name")
}

// Without an Advance in between, as when the leader was away.
func TestReserveHandsOutNoExpiredJob(t *testing.T) {
	r := expiring(t, jobpb.Expiry_EXPIRY_DROP)
	r.do(opAdd(&jobpb.Add{Id: "late", Topic: "t"}), opAdd(&jobpb.Add{Id: "byname", Topic: "t", Priority: 9}))
	r.now += 60
	r.do(opAdd(&jobpb.Add{Id: "fresh", Topic: "t", Priority: 5}))
	r.now += 40
	jobs := r.one(opReserve(2, "t")).Jobs
	require.Len(t, jobs, 1)
	require.Equal(t, "fresh", jobs[0].Id)
	require.EqualValues(t, 2, r.topic("t").Expired)
	r.one(opAdd(&jobpb.Add{Id: "byname", Topic: "t"}))
	r.now += 100
	gone := r.one(opReserveJob(byID("byname"), 0))
	require.Equal(t, jobpb.Code_NOT_FOUND, gone.Code)
	require.Contains(t, gone.Message, "has expired")
	require.EqualValues(t, 3, r.topic("t").Expired)
}

func TestOneReserveMeetsABoundedNumberOfExpiredJobs(t *testing.T) {
	r := expiring(t, jobpb.Expiry_EXPIRY_DROP)
	adds := make([]*jobpb.Op, maxExpire+10)
	for i := range adds {
		adds[i] = opAdd(&jobpb.Add{Topic: "t"})
	}
	r.do(adds...)
	r.now += 100
	r.do(opAdd(&jobpb.Add{Topic: "t", Id: "fresh"}))
	require.Empty(t, r.one(opReserve(1, "t")).Jobs)
	require.EqualValues(t, maxExpire, r.topic("t").Expired)
	require.Equal(t, "fresh", r.one(opReserve(1, "t")).Jobs[0].Id, "the next one goes on where it ended")
}

func TestExpiryIsInTheOrderOfDueInstantsNotOfPriorities(t *testing.T) {
	r := expiring(t, jobpb.Expiry_EXPIRY_DROP)
	for i := range 20 {
		r.one(opAdd(&jobpb.Add{Id: fmt.Sprint(i), Topic: "t", Priority: uint32(20 - i)}))
		r.now++
	}
	r.now = rigStart + 100 + 9
	r.one(opAdvance(1000))
	require.EqualValues(t, 10, r.topic("t").Expired)
	require.EqualValues(t, 10, r.topic("t").Ready)
	require.EqualValues(t, rigStart+110, r.m.NextDue())
}

func TestTheTimeOfExpiryIsChangedForJobsThatAreThere(t *testing.T) {
	r := expiring(t, jobpb.Expiry_EXPIRY_DROP)
	r.do(opAdd(&jobpb.Add{Id: "ready", Topic: "t"}), opAdd(&jobpb.Add{Id: "delayed", Topic: "t", DelayMs: 50}))
	r.expireAfter(80, jobpb.Expiry_EXPIRY_DEAD)
	r.now += 80
	r.one(opAdvance(10))
	require.Equal(t, jobpb.State_STATE_DEAD, r.job(1).State)
	require.Equal(t, jobpb.State_STATE_READY, r.job(2).State)
	r.one(opSettings(&jobpb.SetTopic{Topic: "t"}))
	require.Zero(t, r.m.NextDue())
	r.now += 1_000_000
	r.one(opAdvance(10))
	require.Len(t, r.one(opReserve(10, "t")).Jobs, 1, "without the setting none expires")
}

// Whatever state they are in when the topic gets the setting.
func TestJobsThatWereAddedBeforeTheTopicHadAnExpiryExpireToo(t *testing.T) {
	r := newRig(t, Options{windowCap: 4})
	r.do(opAdd(&jobpb.Add{Id: "reserved", Topic: "t"}), opReserve(1, "t"))
	r.do(opAdd(&jobpb.Add{Id: "ready", Topic: "t"}), opAdd(&jobpb.Add{Id: "delayed", Topic: "t", DelayMs: 50}))
	r.expireAfter(100, jobpb.Expiry_EXPIRY_DROP)
	require.EqualValues(t, rigStart+100, r.job(2).ExpiresMs)
	require.EqualValues(t, rigStart+150, r.job(3).ExpiresMs)
	require.LessOrEqual(t, r.m.NextDue(), r.now, "an Advance is to list what is ready")
	r.one(opAdvance(10))
	require.EqualValues(t, rigStart+50, r.m.NextDue())
	r.reopen()
	r.now = rigStart + 100
	require.EqualValues(t, 2, r.one(opAdvance(10)).Count, "one fell due, one expired")
	require.Nil(t, r.job(2))
	require.EqualValues(t, rigStart+150, r.m.NextDue())
	r.now = rigStart + 150
	r.one(opAdvance(10))
	require.Nil(t, r.job(3))
	r.do(opRelease(&jobpb.Release{Ref: byID("reserved")}), opAdvance(10))
	require.Nil(t, r.job(1), "a release without a wait keeps its due instant")
	require.EqualValues(t, 3, r.topic("t").Expired)
}

func TestReadyJobsAreListedAsExpiringABoundedNumberAtATime(t *testing.T) {
	r := newRig(t, Options{windowCap: 4})
	for i := range 25 {
		r.one(opAdd(&jobpb.Add{Topic: "t", Priority: uint32(i % 3)}))
	}
	r.expireAfter(100, jobpb.Expiry_EXPIRY_DROP)
	listed := func() uint64 { return r.m.topics["t"].counts[listExpiring] }
	for _, want := range []uint64{10, 20} {
		require.True(t, r.one(opAdvance(10)).More)
		require.Equal(t, want, listed())
		r.reopen()
	}
	// A job may find its place on either side of what is done.
	r.do(opAdd(&jobpb.Add{Topic: "t", Priority: 0}), opAdd(&jobpb.Add{Topic: "t", Priority: 9}))
	require.EqualValues(t, 21, listed())
	require.False(t, r.one(opAdvance(10)).More)
	require.EqualValues(t, 27, listed())
	r.one(opAdd(&jobpb.Add{Topic: "t", Priority: 10}))
	require.EqualValues(t, 28, listed(), "from now on each is listed when it is ready")
	r.now += 100
	r.one(opAdvance(100))
	require.EqualValues(t, 28, r.topic("t").Expired)
}

func TestReserveHandsOutNoExpiredJobThatIsNotListedYet(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Topic: "t"}), opAdd(&jobpb.Add{Id: "byname", Topic: "t"}))
	r.now += 100
	r.expireAfter(100, jobpb.Expiry_EXPIRY_DROP)
	require.Equal(t, jobpb.Code_NOT_FOUND, r.one(opReserveJob(byID("byname"), 0)).Code)
	require.Empty(t, r.one(opReserve(1, "t")).Jobs)
	require.EqualValues(t, 2, r.topic("t").Expired)
}

func TestATopicWithoutExpiryAnyMoreStopsListing(t *testing.T) {
	r := expiring(t, jobpb.Expiry_EXPIRY_DROP)
	r.one(opAdd(&jobpb.Add{Id: "a", Topic: "t"}))
	r.one(opSettings(&jobpb.SetTopic{Topic: "t"}))
	r.do(opDelete(byID("a")), opAdd(&jobpb.Add{Id: "b", Topic: "t"}))
	require.Zero(t, r.m.topics["t"].counts[listExpiring])
	require.Len(t, r.m.topics["t"].topicRecord.append(nil), topicLen)
}

func TestJobsExpireWhileTheirTopicIsPaused(t *testing.T) {
	r := expiring(t, jobpb.Expiry_EXPIRY_DROP)
	r.do(opAdd(&jobpb.Add{Topic: "t"}), &jobpb.Op{Kind: &jobpb.Op_PauseTopic{PauseTopic: &jobpb.PauseTopic{Topic: "t", Endless: true}}})
	require.EqualValues(t, rigStart+100, r.m.NextDue())
	r.now += 100
	r.one(opAdvance(10))
	require.EqualValues(t, 1, r.topic("t").Expired)
}

func TestATopicWithoutExpiryHasNothingOfItOnDisk(t *testing.T) {
	r := newRig(t, Options{})
	r.one(opAdd(&jobpb.Add{Topic: "t"}))
	require.Len(t, r.m.topics["t"].topicRecord.append(nil), topicLen)
	r.expireAfter(100, jobpb.Expiry_EXPIRY_DROP)
	r.one(opAdvance(10))
	require.Len(t, r.m.topics["t"].topicRecord.append(nil), topicLen+expiryLen)
}

func TestADroppedJobIsRetainedAsItsTopicSays(t *testing.T) {
	r := newRig(t, Options{})
	s := &jobpb.TopicSettings{ExpireMs: 100, RetainMs: 5000}
	r.do(opSettings(&jobpb.SetTopic{Topic: "t", Settings: s}), opAdd(&jobpb.Add{Id: "a", Topic: "t"}))
	r.now += 100
	r.one(opAdvance(10))
	j := r.job(1)
	require.Equal(t, jobpb.State_STATE_DELETED, j.State)
	require.Equal(t, jobpb.Event_EXPIRED, j.History[1].Kind)
	require.EqualValues(t, 1, r.topic("t").Retained)
	require.Equal(t, jobpb.Code_NOT_FOUND, r.one(opReserveJob(byID("a"), 0)).Code)
	r.now += 10_000
	r.one(opAdvance(10))
	require.Nil(t, r.job(1))
}

func TestAMovedJobExpiresAsItsNewTopicSays(t *testing.T) {
	r := expiring(t, jobpb.Expiry_EXPIRY_DROP)
	r.do(opAdd(&jobpb.Add{Id: "a", Topic: "t"}), opAdd(&jobpb.Add{Id: "stays", Topic: "t"}), opAdd(&jobpb.Add{Topic: "u"}))
	move := &jobpb.MoveJobs{Ref: byID("a"), To: "u"}
	require.Equal(t, jobpb.Code_OK, r.one(&jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: move}}).Code)
	r.now += 100
	r.one(opAdvance(10))
	require.Zero(t, r.topic("u").Expired, "u has no time of expiry")
	require.EqualValues(t, 1, r.topic("t").Expired)
	r.one(opSettings(&jobpb.SetTopic{Topic: "u", Settings: &jobpb.TopicSettings{ExpireMs: 1}}))
	r.one(opAdvance(10)) // lists them
	r.one(opAdvance(10))
	require.EqualValues(t, 2, r.topic("u").Expired)
}

// The topics exchange their lists, and with them how far each is covered.
func TestATopicThatIsMovedWholeExpiresAsItsNewTopicSays(t *testing.T) {
	r := expiring(t, jobpb.Expiry_EXPIRY_DROP)
	r.do(opAdd(&jobpb.Add{Topic: "t"}), opMove(&jobpb.MoveJobs{Topic: "t", To: "u", Max: 10}))
	r.now += 100
	r.one(opAdvance(10))
	require.EqualValues(t, 1, r.topic("u").Ready, "u has no time of expiry")
	r.check()
	r.do(opMove(&jobpb.MoveJobs{Topic: "u", To: "t", Max: 10}), opAdvance(10), opAdvance(10))
	require.EqualValues(t, 1, r.topic("t").Expired)
}
