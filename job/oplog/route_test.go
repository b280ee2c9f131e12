package oplog

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// What no route is known of could be done in a shard where nobody finds it.
func TestEveryOperationHasARoute(t *testing.T) {
	for name, row := range operations {
		require.NotZero(t, row.route, "route of %s", name)
		switch row.route {
		case RouteJob:
			require.NotNil(t, row.ref, "the job of %s", name)
		case RouteAdds:
			require.NotNil(t, row.jobs, "the jobs of %s", name)
		case RouteSchedule:
			require.NotNil(t, row.name, "the schedule of %s", name)
		case RouteTopic:
			require.NotNil(t, row.topic, "the topic of %s", name)
		case RouteGroup:
			require.True(t, row.leaderOnly || name == "promote_standby", "a client makes %s, so it needs a route", name)
		case RouteConfig:
			require.Nil(t, row.jobs, "the config group has no jobs, and %s brings some", name)
		}
	}
}

func TestAnOperationOnOneJobGoesToItsShard(t *testing.T) {
	move := &jobpb.MoveJobs{Topic: "a", To: "b"}
	require.Equal(t, RouteTopic, RouteOf(&jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: move}}))
	move.Ref = &jobpb.Ref{Seq: 7}
	require.Equal(t, RouteJob, RouteOf(&jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: move}}))
	require.Equal(t, RouteJob, RouteOf(&jobpb.Op{Kind: &jobpb.Op_Touch{Touch: &jobpb.Touch{Ref: move.Ref}}}))
	fire := &jobpb.Op{Kind: &jobpb.Op_FireSchedule{FireSchedule: &jobpb.FireSchedule{Name: "nightly"}}}
	require.Equal(t, RouteSchedule, RouteOf(fire))
	require.Equal(t, "nightly", NameOf(fire))
}
