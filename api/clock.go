package api

import "tarry/job"

// clock responds with the comparison of the members' clocks.
func (s *server) clock(x *call) error {
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	c, err := s.Operator.Clocks(ctx)
	if err != nil {
		return err
	}
	x.json.success()
	x.json.float("max_offset", c.MaxOffset.Seconds())
	x.json.boolean("agreed", c.Agreed)
	if !c.Majority.IsZero() {
		x.json.timestamp("majority", c.Majority.UnixMilli())
		x.json.float("cluster_ahead", c.ClusterAhead.Seconds())
	}
	objects(&x.json, "clocks", c.Nodes, func(n job.NodeClock) {
		x.json.text("id", n.ID)
		x.json.boolean("voter", n.Voter)
		x.json.boolean("answered", n.Known)
		if n.Known {
			x.json.float("offset", n.Offset.Seconds())
			x.json.float("within", n.Within.Seconds())
		}
		x.json.boolean("off", n.Off)
	})
	x.json.endObject()
	return nil
}

// resetClock sets the queue's clock back.
func (s *server) resetClock(x *call) error { return s.operate(x, s.Operator.ResetClock) }
