package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

func opMove(m *jobpb.MoveJobs) *jobpb.Op { return &jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: m}} }

func opPurge(p *jobpb.Purge) *jobpb.Op { return &jobpb.Op{Kind: &jobpb.Op_Purge{Purge: p}} }

func opKickSweep(topic string, most uint32, s *jobpb.Sweep) *jobpb.Op {
	return &jobpb.Op{Kind: &jobpb.Op_KickTopic{KickTopic: &jobpb.KickTopic{Topic: topic, Max: most, Sweep: s}}}
}

// A command for many jobs ends early at large ones.
func TestCommandsForManyJobsEndEarlyAtLargeOnes(t *testing.T) {
	r := newRig(t, Options{})
	const jobs = 6
	for range jobs {
		r.do(opAdd(&jobpb.Add{Topic: "t", Body: make([]byte, sweepBytes/4)}))
	}
	r.do(opAdd(&jobpb.Add{Topic: "u"}))
	moved := r.one(opMove(&jobpb.MoveJobs{Topic: "t", To: "u", Max: 100}))
	require.Equal(t, []any{uint32(4), true}, []any{moved.Count, moved.More})
	moved = r.one(opMove(&jobpb.MoveJobs{Topic: "t", To: "u", Max: 100}))
	require.Equal(t, []any{uint32(2), false}, []any{moved.Count, moved.More})

	// Jobs that the filter does not select are read too.
	purge := &jobpb.Purge{Topic: "u", State: jobpb.State_STATE_READY, Max: 100, Sweep: &jobpb.Sweep{Scan: 100, Filter: &jobpb.Filter{IdPrefix: "none"}}}
	purged := r.one(opPurge(purge))
	require.Zero(t, purged.Count)
	require.NotNil(t, purged.GetDetails().GetNext())
	purge.Sweep = &jobpb.Sweep{Scan: 100, From: purged.Details.Next}
	purged = r.one(opPurge(purge))
	require.Equal(t, []any{uint32(3), true}, []any{purged.Count, purged.GetDetails().GetNext() == nil})
}

// A sweep ends even if the jobs that it kicks die again.
func TestASweepSkipsJobsThatDieDuringIt(t *testing.T) {
	r := newRig(t, Options{})
	kill := func() {
		for _, j := range r.one(opReserve(10, "t")).Jobs {
			r.do(opBury(&jobpb.Bury{Ref: bySeq(j.Seq)}))
		}
	}
	r.do(opAdd(&jobpb.Add{Topic: "t"}), opAdd(&jobpb.Add{Topic: "t"}), opAdd(&jobpb.Add{Topic: "t"}))
	kill()
	var at *jobpb.Progress
	for range 3 {
		kicked := r.one(opKickSweep("t", 1, &jobpb.Sweep{Scan: 10, From: at}))
		require.Equal(t, uint32(1), kicked.Count)
		kill()
		at = kicked.GetDetails().GetNext()
	}
	require.Nil(t, at, "it kicked the three jobs that were dead at its start")
	require.EqualValues(t, 3, r.topic("t").Dead)
}
