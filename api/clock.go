package api

import (
	"time"

	"tarry/api/wire"
	"tarry/cluster/report"
)

// clock responds with the comparison of the members' clocks.
func (s *server) clock(x *call) (r wire.Clocks, err error) {
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	c, err := s.Operator.Clocks(ctx)
	if err != nil {
		return r, err
	}
	r = wire.Clocks{MaxOffset: secondsOf(c.MaxOffsetUs), Agreed: c.Agreed}
	if c.MajorityUs != 0 {
		r.Majority, r.ClusterAhead = wire.Time(c.MajorityUs/1000), new(secondsOf(c.ClusterAheadUs))
	}
	r.Clocks = each(c.Nodes, func(n *report.NodeClock) wire.Clock {
		shown := wire.Clock{ID: n.Id, Voter: n.Voter, Answered: n.Known, Off: n.Off}
		if n.Known {
			shown.Offset, shown.Within = new(secondsOf(n.OffsetUs)), new(secondsOf(n.WithinUs))
		}
		return shown
	})
	return r, nil
}

func secondsOf(us int64) wire.Seconds {
	return wire.Seconds((time.Duration(us) * time.Microsecond).Seconds())
}

// resetClock sets the queue's clock back.
func (s *server) resetClock(x *call) error { return s.operate(x, s.Operator.ResetClock) }
