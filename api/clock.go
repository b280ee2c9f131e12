package api

import (
	"time"

	"tarry/cluster/report"
)

// clock responds with the comparison of the members' clocks.
func (s *server) clock(x *call) error {
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	c, err := s.Operator.Clocks(ctx)
	if err != nil {
		return err
	}
	x.json.success()
	x.json.float("max_offset", seconds(c.MaxOffsetUs))
	x.json.boolean("agreed", c.Agreed)
	if c.MajorityUs != 0 {
		x.json.timestamp("majority", c.MajorityUs/1000)
		x.json.float("cluster_ahead", seconds(c.ClusterAheadUs))
	}
	objects(&x.json, "clocks", c.Nodes, func(n *report.NodeClock) {
		x.json.text("id", n.Id)
		x.json.boolean("voter", n.Voter)
		x.json.boolean("answered", n.Known)
		if n.Known {
			x.json.float("offset", seconds(n.OffsetUs))
			x.json.float("within", seconds(n.WithinUs))
		}
		x.json.boolean("off", n.Off)
	})
	x.json.endObject()
	return nil
}

func seconds(us int64) float64 { return (time.Duration(us) * time.Microsecond).Seconds() }

// resetClock sets the queue's clock back.
func (s *server) resetClock(x *call) error { return s.operate(x, s.Operator.ResetClock) }
