package api

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"tarry/api/wire"
	"tarry/cluster/report"
	"tarry/job"
)

func (s *server) members(x *call) error {
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	list, err := s.Operator.Members(ctx)
	if err != nil {
		return err
	}
	stranger := s.Access.State().Mode() == enforce && x.who.Principal.IsAnonymous()
	x.json.success()
	objects(&x.json, "members", list, func(m *report.Member) {
		if stranger { // where clients can go, and no more
			m = &report.Member{HttpAddress: m.HttpAddress, Role: m.Role, Voter: m.Voter, Alive: m.Alive}
		}
		x.json.text("id", m.Id)
		x.json.text("address", m.Address)
		x.json.text("http_address", m.HttpAddress)
		x.json.text("role", m.Role)
		x.json.boolean("voter", m.Voter)
		x.json.booleanIfTrue("non_voter", m.NonVoter)
		x.json.boolean("alive", m.Alive)
		x.json.booleanIfTrue("draining", m.Draining)
		x.json.number("applied_index", m.AppliedIndex)
		x.json.number("lag", m.Lag)
		x.json.numberUnlessZero("disk_free", m.DiskFreeBytes)
		x.json.booleanIfTrue("disk_low", m.DiskLow)
		x.json.text("version", m.Version)
		x.json.number("cluster_version", uint64(m.ClusterVersion))
		x.json.number("min_cluster_version", uint64(m.MinVersion))
		x.json.number("max_cluster_version", uint64(m.MaxVersion))
	})
	if !stranger {
		x.json.text("admission", wire.AdmissionNames[s.Operator.AdmissionMode()])
	}
	x.json.endObject()
	return nil
}

func (s *server) health(x *call) error {
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	h, err := s.Operator.Health(ctx)
	if err != nil {
		return err
	}
	x.json.success()
	x.json.boolean("healthy", h.Healthy)
	x.json.name("failure_tolerance")
	x.json.b = strconv.AppendInt(x.json.b, int64(h.FailureTolerance), 10)
	x.json.text("severity", h.Severity())
	x.json.texts("reasons", h.Reasons)
	objects(&x.json, "problems", h.Problems, func(p *report.Problem) {
		x.json.text("severity", p.Severity)
		x.json.text("reason", p.Text)
		x.json.text("kind", p.Kind)
		x.json.boolean("unhealthy", p.Unhealthy)
		x.json.textUnlessEmpty("node", p.Node)
		if p.AtMs != 0 {
			x.json.timestamp("at", p.AtMs)
		}
	})
	x.json.number("cluster_version", uint64(h.ClusterVersion))
	x.json.text("upgrade", h.Upgrade)
	x.json.endObject()
	return nil
}

func (s *server) transferLeadership(x *call, q *wire.TransferRequest) (r wire.Transfer, err error) {
	if q.ID.Set {
		if err := job.CheckRefID("id", q.ID.V); err != nil {
			return r, err
		}
	}
	ctx, cancel := x.timeout(s.OperatorTimeout)
	defer cancel()
	leads, err := s.leads(ctx, q.ID.V)
	if err == nil && !leads {
		err = s.Operator.TransferLeadership(ctx, q.ID.V)
	}
	return wire.Transfer{Moved: !leads}, err
}

// leads reports whether the node with this id leads already.
func (s *server) leads(ctx context.Context, id string) (bool, error) {
	if id == "" {
		return false, nil
	}
	members, err := s.Operator.Members(ctx)
	return slices.ContainsFunc(members, func(m *report.Member) bool { return m.Id == id && m.Role == "leader" }), err
}

func (s *server) removeMember(x *call) error {
	id, err := x.pathID()
	if err != nil {
		return err
	}
	return s.operate(x, func(ctx context.Context) error { return s.Operator.RemoveMember(ctx, id) })
}

func (s *server) removedNodes(x *call) (r wire.RemovedNodes, err error) {
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	list, err := s.Operator.RemovedNodes(ctx)
	r.Removed = each(list, func(n *report.RemovedNode) wire.RemovedNode {
		return wire.RemovedNode{ID: n.Id, RemovedAt: wire.Time(n.AtMs)}
	})
	return r, err
}

func (s *server) admitNode(x *call) error {
	id, err := x.pathID()
	if err != nil {
		return err
	}
	return s.operate(x, func(ctx context.Context) error { return s.Operator.AdmitNode(ctx, id) })
}

func (s *server) join(x *call) error {
	var q wire.JoinRequest
	if err := x.decode(maxSmallRequest, &q); err != nil {
		return err
	}
	addrs := q.Addresses.V
	if len(addrs) == 0 || len(addrs) > wire.MaxJoinAddresses {
		return job.Invalid("addresses", "has %d items; it takes 1 to %d", len(addrs), wire.MaxJoinAddresses)
	}
	for i, a := range addrs {
		if err := checkHostPort(fmt.Sprintf("addresses[%d]", i), a); err != nil {
			return err
		}
	}
	return s.operate(x, func(ctx context.Context) error { return s.Operator.Join(ctx, addrs) })
}

func checkHostPort(field, v string) error {
	host, port, err := net.SplitHostPort(v)
	if n, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || host == "" || n == 0 {
		return job.Invalid(field, "is %.100q; it takes host:port of a node's gossip address", v)
	}
	return nil
}

func (s *server) leave(x *call) error {
	return s.operate(x, s.Operator.Leave)
}

// operate runs one operator's call and responds only with success.
func (s *server) operate(x *call, f func(context.Context) error) error {
	ctx, cancel := x.timeout(s.OperatorTimeout)
	defer cancel()
	if err := f(ctx); err != nil {
		return err
	}
	x.json.success()
	x.json.endObject()
	return nil
}

func (s *server) verify(x *call) (r wire.Verification, err error) {
	ctx, cancel := x.timeout(s.OperatorTimeout)
	defer cancel()
	v, err := s.Operator.Verify(ctx)
	r = wire.Verification{Equal: v.Equal, Index: v.Index}
	r.Digests = each(v.Digests, func(d job.NodeDigest) wire.Digest { return wire.Digest{ID: d.ID, Digest: d.Digest, Error: d.Error} })
	return r, err
}

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
