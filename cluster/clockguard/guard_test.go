package clockguard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/report"
	"tarry/job"
)

// cluster is n1 and the servers that it asks, on fake time.
type cluster struct {
	*Guard
	clocks        map[raft.ServerID]time.Duration // how far each is ahead; absent: silent
	queue         time.Duration                   // how far the queue's clock is ahead
	confirmed     time.Duration                   // the majority's time at the last confirmation
	transferredTo []raft.ServerID
}

func newCluster(voters ...raft.ServerID) *cluster {
	c := &cluster{clocks: map[raft.ServerID]time.Duration{}}
	var conf raft.Configuration
	for _, id := range voters {
		conf.Servers = append(conf.Servers, raft.Server{ID: id, Suffrage: raft.Voter})
		c.clocks[id] = 0
	}
	c.Guard = New(Config{
		ServerID: voters[0], MaxOffset: DefaultMaxOffset, KeepFor: 10 * time.Second, Logger: slog.New(slog.DiscardHandler),
		Clocks:        clocks{c, voters[0]},
		Configuration: func() raft.Configuration { return conf },
		Ask: func(_ context.Context, id raft.ServerID) error {
			by, ok := c.clocks[id]
			if !ok {
				return errors.New("no answer")
			}
			now := time.Now()
			c.Record(id, now.Round(0).Add(by), now, now)
			return nil
		},
		Transfer: func(to raft.ServerID) error { c.transferredTo = append(c.transferredTo, to); return nil },
	})
	return c
}

// clocks are those of a node of the cluster.
type clocks struct {
	of   *cluster
	node raft.ServerID
}

func (c clocks) Wall() time.Time                  { return time.Now().Add(c.of.clocks[c.node]) }
func (c clocks) Queue() time.Time                 { return time.Now().Add(c.of.queue) }
func (c clocks) Confirmed(at, majority time.Time) { c.of.confirmed = majority.Sub(at.Round(0)) }

func TestANewLeaderWhoseClockIsOffTransfersLeadershipToOneThatIsRight(t *testing.T) {
	for _, c := range []struct {
		clocks        map[raft.ServerID]time.Duration
		says          string
		transferredTo string
	}{
		{map[raft.ServerID]time.Duration{"n1.a": 0, "n2.b": time.Second, "n3.c": 0}, "", "[]"},
		{map[raft.ServerID]time.Duration{"n1.a": time.Hour, "n2.b": 0, "n3.c": 0}, "does not lead", "[n2.b]"},
		{map[raft.ServerID]time.Duration{"n1.a": -time.Hour, "n2.b": 0, "n3.c": 0}, "does not lead", "[n2.b]"},
		{map[raft.ServerID]time.Duration{"n1.a": time.Hour, "n2.b": 0}, "", "[]"}, // nobody can be blamed
		{map[raft.ServerID]time.Duration{"n1.a": 0}, "no majority of the voters", "[]"},
	} {
		t.Run(fmt.Sprint(c.clocks), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newCluster("n1.a", "n2.b", "n3.c")
				s.clocks = c.clocks
				err := s.Confirm(t.Context())
				require.Equal(t, c.says == "", err == nil, "%v", err)
				if err != nil {
					require.ErrorContains(t, err, c.says)
				}
				require.Equal(t, c.transferredTo, fmt.Sprint(s.transferredTo))
			})
		})
	}
}

func TestACheckUsesTheReadingsOfTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCluster("n1.a", "n2.b", "n3.c")
		fit := func() []raft.ServerID { return []raft.ServerID{"n1.a", "n2.b", "n3.c"} }
		require.Nil(t, s.Offsets(), "there was no check")
		s.clocks["n3.c"] = -time.Hour
		s.Confirm(t.Context())
		for _, id := range []raft.ServerID{"n2.b", "n3.c"} {
			require.NoError(t, s.cfg.Ask(t.Context(), id))
		}
		s.Check(t.Context(), fit)
		by, off := s.Off("n3.c")
		require.True(t, off)
		require.Equal(t, -time.Hour, by)
		require.Equal(t, map[string]time.Duration{"n1": 0, "n2": 0, "n3": -time.Hour}, s.Offsets())
		require.Equal(t, "the clock of n3 is 1h0m0s behind the majority's; more than 5s keeps it from leading: set it right", report.Texts(s.Problems()))
		require.Empty(t, s.transferredTo)
		require.Equal(t, job.CodeConflict, job.CodeOf(s.CheckLeader(t.Context(), "n3.c")))
		require.NoError(t, s.CheckLeader(t.Context(), "n2.b"))

		s.clocks["n1.a"] = time.Hour
		s.clocks["n3.c"] = 0
		s.Check(t.Context(), fit)
		require.Equal(t, []raft.ServerID{"n2.b"}, s.transferredTo)
		require.Zero(t, s.confirmed, "the queue uses the majority's time")

		s.Forget()
		_, off = s.Off("n1.a")
		require.False(t, off)
		require.Empty(t, s.Problems())
	})
}

func TestAWarningOfTheLeaderExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCluster("n1.a", "n2.b")
		require.Empty(t, s.Warning())
		s.RecordWarning(-time.Minute)
		require.Contains(t, s.Warning(), "1m0s behind the majority's")
		time.Sleep(s.cfg.KeepFor + 1)
		require.Empty(t, s.Warning())
	})
}

func TestTheQueuesClockIsSetBackOnlyWhenItRanAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCluster("n1.a", "n2.b", "n3.c")
		_, err := s.CheckReset(t.Context())
		require.ErrorContains(t, err, "only when it is ahead by more than 5s")
		s.queue = time.Hour
		to, err := s.CheckReset(t.Context())
		require.NoError(t, err)
		require.Equal(t, time.Now().UnixNano(), to.UnixNano())
		require.Equal(t, time.Hour.Microseconds(), s.Compare(t.Context()).ClusterAheadUs)
		s.clocks["n1.a"] = time.Hour
		_, err = s.CheckReset(t.Context())
		require.ErrorContains(t, err, "set the nodes' clocks right first")
		time.Sleep(time.Second) // earlier readings do not count
		delete(s.clocks, "n2.b")
		delete(s.clocks, "n3.c")
		_, err = s.CheckReset(t.Context())
		require.ErrorContains(t, err, "no majority")
	})
}

// Its own clock and an old reading of another that was wrong in the same way are no majority.
func TestALeaderWhoseClockJumpsAsksTheVotersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("n1.a", "n2.b", "n3.c")
		c.clocks["n2.b"] = time.Hour
		require.NoError(t, c.Confirm(t.Context()))
		c.ask(t.Context(), c.voters(), never)
		c.Check(t.Context(), c.voters)
		time.Sleep(time.Second)
		c.clocks["n2.b"], c.clocks["n1.a"] = 0, time.Hour
		c.Check(t.Context(), c.voters)
		require.Zero(t, c.confirmed)
		require.NotEmpty(t, c.transferredTo)
	})
}
