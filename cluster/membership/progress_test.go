package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAServerThatStandsStillIsNamed(t *testing.T) {
	start := time.Unix(0, 0)
	type report struct {
		after           time.Duration
		trouble         string
		applied, leader uint64
	}
	for name, c := range map[string]struct {
		reports []report
		stands  string
	}{
		"nothing is known":                 {nil, ""},
		"idle":                             {[]report{{0, "", 5, 5}, {2 * time.Minute, "", 5, 5}}, ""},
		"a little behind, and goes on":     {[]report{{0, "", 5, 9}, {4 * time.Second, "", 6, 12}, {8 * time.Second, "", 7, 19}}, ""},
		"an entry after an idle hour":      {[]report{{0, "", 5, 5}, {time.Hour, "", 5, 5}, {time.Hour + 2*time.Second, "", 5, 6}}, ""},
		"stands":                           {[]report{{0, "", 5, 5}, {2 * time.Second, "", 5, 6}, {8 * time.Second, "", 5, 9}}, "it has applied nothing for 6s, and is 4 log entries behind"},
		"stands since the leader leads":    {[]report{{0, "", 5, 9}, {6 * time.Second, "", 5, 9}}, "it has applied nothing for 6s, and is 4 log entries behind"},
		"stood, and has all":               {[]report{{0, "", 5, 9}, {6 * time.Second, "", 9, 9}}, ""},
		"stood, and has applied one":       {[]report{{0, "", 5, 9}, {6 * time.Second, "", 6, 9}}, ""},
		"ahead of what the leader had":     {[]report{{0, "", 5, 5}, {9 * time.Second, "", 6, 5}}, ""},
		"says itself what is wrong":        {[]report{{0, "its loop hangs", 5, 5}}, "its loop hangs"},
		"said what was wrong, and is well": {[]report{{0, "its loop hangs", 5, 5}, {time.Second, "", 5, 5}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var p memberProgress
			now := start
			for _, r := range c.reports {
				now = start.Add(r.after)
				p.record("n2.b", r.trouble, r.applied, r.leader, now)
			}
			require.Equal(t, c.stands, p.stands("n2.b", now))
		})
	}
}

// Such a follower answers heartbeats, so its last contact with the leader is fresh.
func TestAFollowerWhoseRaftHangsIsNamedAndDoesNotCount(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	leader := w.leader()
	tolerance := func() int32 { return w.leader().LeaderHealth().GetFailureTolerance() }
	eventually(t, "one may fail", func() bool { return tolerance() == 1 })
	hangs := other(nodes, leader)
	hangs.trouble.Store(new("its Raft loop has not responded for 7s: it receives a state from another node"))
	eventually(t, "it is named", func() bool {
		return w.leader().reports(hangs.id + " does not take part: its Raft loop has not responded for 7s: it receives a state from another node")
	})
	eventually(t, "none may fail", func() bool { return tolerance() == 0 })
	hangs.trouble.Store(nil)
	eventually(t, "all is well", func() bool { return tolerance() == 1 && !w.leader().reports(hangs.id) })
}
