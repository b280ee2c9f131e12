package job

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

func TestNewNamesThatAreHardToUseAreRefusedFromVersionTwoOn(t *testing.T) {
	add := func(topic, id string) *jobpb.Add { return &jobpb.Add{Topic: topic, Id: id, TtrMs: 1} }
	ops := func(name string) map[string]*jobpb.Op {
		schedule := goodSchedule()
		schedule.Job.Topic = name
		return map[string]*jobpb.Op{
			"topic":      {Kind: &jobpb.Op_Add{Add: add(name, "")}},
			"id":         {Kind: &jobpb.Op_Add{Add: add("t", name)}},
			"jobs[0].id": {Kind: &jobpb.Op_AtomicAdd{AtomicAdd: &jobpb.AtomicAdd{Adds: []*jobpb.Add{add("t", name)}}}},
			"to_topic":   {Kind: &jobpb.Op_Kick{Kick: &jobpb.Kick{Ref: &jobpb.Ref{Id: "a"}, ToTopic: name}}},
			"name":       {Kind: &jobpb.Op_PutSchedule{PutSchedule: &jobpb.PutSchedule{Name: name, Schedule: goodSchedule()}}},
			"job.topic":  {Kind: &jobpb.Op_PutSchedule{PutSchedule: &jobpb.PutSchedule{Name: "s", Schedule: schedule}}},
		}
	}
	for _, bad := range []string{".", "..", " ", " a", "a ", "a\u00a0", "\u2003a"} {
		for field, op := range ops(bad) {
			require.NoError(t, CheckOp(op, LimitsAt(FirstVersion)), "%q as %s", bad, field)
			var e *Error
			require.ErrorAs(t, CheckOp(op, LimitsAt(2)), &e, "%q as %s", bad, field)
			require.Equal(t, field, e.Field)
		}
	}
	for _, good := range []string{"...", ".a", "a.", "a b", "a/.."} {
		for field, op := range ops(good) {
			require.NoError(t, CheckOp(op, LimitsAt(2)), "%q as %s", good, field)
		}
	}
	// What is there already, and what comes from another cluster, keeps its name.
	require.NoError(t, CheckOp(&jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: &jobpb.Ref{Id: " a"}}}}, LimitsAt(2)))
	require.NoError(t, CheckOp(&jobpb.Op{Kind: &jobpb.Op_ImportJob{ImportJob: &jobpb.ImportJob{Add: &jobpb.Add{Topic: " a", Id: "a ", TtrMs: 1, DueMs: 1}}}}, LimitsAt(2)))
}
