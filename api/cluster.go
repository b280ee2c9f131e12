package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"tarry/api/wire"
	"tarry/cluster/report"
	"tarry/internal/invitation"
	"tarry/job"
	"tarry/job/jobpb"
)

func (s *server) members(x *call) (r wire.Members, err error) {
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	list, err := s.Operator.Members(ctx)
	if err != nil {
		return r, err
	}
	stranger := s.Access.State().Mode() == enforce && x.who.Principal.IsAnonymous()
	r.Members = each(list, func(m *report.Member) wire.Member {
		if stranger { // where clients can go, and no more
			return wire.Member{HTTPAddress: m.HttpAddress, Role: m.Role, Voter: m.Voter, Alive: m.Alive}
		}
		return wire.Member{
			ID: m.Id, Address: m.Address, HTTPAddress: m.HttpAddress, Role: m.Role, Voter: m.Voter, NonVoter: m.NonVoter, Alive: m.Alive, Draining: m.Draining,
			AppliedIndex: m.AppliedIndex, Lag: m.Lag, DiskFree: m.DiskFreeBytes, DiskLow: m.DiskLow, Version: m.Version,
			ClusterVersion: uint64(m.ClusterVersion), MinClusterVersion: uint64(m.MinVersion), MaxClusterVersion: uint64(m.MaxVersion),
		}
	})
	if !stranger {
		r.Admission = wire.AdmissionNames[s.Operator.AdmissionMode()]
	}
	return r, nil
}

func (s *server) health(x *call) (r wire.Health, err error) {
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	h, err := s.Operator.Health(ctx)
	if err != nil {
		return r, err
	}
	problems := each(h.Problems, func(p *report.Problem) wire.Problem {
		return wire.Problem{Severity: p.Severity, Reason: p.Text, Kind: p.Kind, Unhealthy: p.Unhealthy, Node: p.Node, At: wire.Time(p.AtMs)}
	})
	return wire.Health{
		Healthy: h.Healthy, FailureTolerance: float64(h.FailureTolerance), Severity: h.Severity(), Reasons: h.Reasons, Problems: problems,
		ClusterVersion: uint64(h.ClusterVersion), Upgrade: h.Upgrade,
	}, nil
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

func (s *server) shards(x *call) (r wire.Shards, err error) {
	sharding := s.Operator.Sharding()
	stranger := s.Access.State().Mode() == enforce && x.who.Principal.IsAnonymous()
	r.Shards = uint64(sharding.Shards)
	r.Groups = each(sharding.Groups, func(g job.Group) wire.Group {
		row := wire.Group{Group: uint64(g.Number), Address: g.Address}
		if g.Shard >= 0 {
			row.Shard = new(uint64(g.Shard))
		}
		if !stranger { // to whom only where to go is shown
			row.Leader, row.Term = g.Leader, g.Term
		}
		return row
	})
	return r, nil
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
	return x.reply(wire.Done{})
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

// keyring lists the gossip keys of the members by their fingerprints. No call of this API
// takes or gives a key itself.
func (s *server) keyring(x *call) (r wire.Keyring, err error) {
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	k, err := s.Operator.Keyring(ctx)
	return keyringShown(k), err
}

// installKey makes the leader make a key.
func (s *server) installKey(x *call) (wire.Keyring, error) {
	return s.changeKeyring(x, report.KeyringChange_INSTALL, "")
}

// changeKey changes the key that the path names.
func changeKey(change report.KeyringChange) func(*server, *call) error {
	return answer(func(s *server, x *call) (r wire.Keyring, err error) {
		key, err := x.pathValue("key")
		if err != nil {
			return r, err
		}
		if err := job.CheckRefID("key", key); err != nil {
			return r, err
		}
		return s.changeKeyring(x, change, key)
	})
}

func (s *server) changeKeyring(x *call, change report.KeyringChange, key string) (wire.Keyring, error) {
	ctx, cancel := x.timeout(s.OperatorTimeout)
	defer cancel()
	k, err := s.Operator.ChangeKeyring(ctx, change, key)
	return keyringShown(k), err
}

func keyringShown(k *report.Keyring) wire.Keyring {
	nodes := each(k.GetNodes(), func(n *report.NodeRing) wire.NodeKeys {
		return wire.NodeKeys{ID: n.Id, Revision: n.GetRing().GetRevision(), Keys: n.GetRing().GetFingerprints(), Error: n.Error}
	})
	ring := k.GetRing()
	return wire.Keyring{Revision: ring.GetRevision(), Keys: ring.GetFingerprints(), Changed: k.GetChanged(), Current: uint64(k.Current()), Nodes: nodes}
}

// readAdmission reads who may become a member.
func (s *server) readAdmission(x *call) (*jobpb.Admission, error) {
	stale, err := x.stale()
	if err != nil {
		return nil, err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	a, err := s.Queue.Read(ctx, &jobpb.Read{What: &jobpb.Read_Admission{Admission: &jobpb.Empty{}}}, stale)
	return a.GetAdmission(), err
}

func (s *server) getAdmission(x *call) (wire.Admission, error) {
	a, err := s.readAdmission(x)
	return wire.Admission{Mode: wire.AdmissionNames[a.GetMode()]}, err
}

// putAdmission handles PUT /v1/cluster/admission.
func (s *server) putAdmission(x *call, q *wire.AdmissionRequest) (r wire.Admission, err error) {
	if !q.Mode.Set {
		return r, job.Invalid("mode", "is missing; it takes open or invited")
	}
	mode, err := wire.WordOf("mode", q.Mode, wire.AdmissionNames)
	if err != nil {
		return r, err
	}
	op := &jobpb.Op{Kind: &jobpb.Op_SetAdmission{SetAdmission: &jobpb.SetAdmission{Mode: jobpb.AdmissionMode(mode)}}}
	_, err = s.doOne(x, op)
	return wire.Admission{Mode: q.Mode.V}, err
}

// invitations handles GET /v1/cluster/invitations.
func (s *server) invitations(x *call) (r wire.Invitations, err error) {
	a, err := s.readAdmission(x)
	now := time.Now().UnixMilli()
	r.Invitations = each(a.GetInvitations(), func(v *jobpb.Invitation) wire.Invitation {
		return wire.Invitation{
			ID: v.Id, Node: v.NodeId, CreatedAt: wire.Time(v.CreatedMs), ExpiresAt: wire.Time(v.ExpiresMs), Expired: v.ExpiresMs <= now,
			UsedBy: v.ServerId, UsedAt: wire.Time(v.UsedMs),
		}
	})
	return r, err
}

// invitationIDBytes is how many random bytes an id has, in hexadecimal.
const invitationIDBytes = 4

// invite handles POST /v1/cluster/invitations.
func (s *server) invite(x *call, q *wire.InvitationRequest) (r wire.Invited, err error) {
	lasts, err := job.Millis("expires_in", q.ExpiresIn.Or(job.DefaultInvitationTime.Seconds()), job.MaxInvitationTime)
	if err != nil {
		return r, err
	}
	if err := s.checkInvited(x, q.Node.V); err != nil {
		return r, err
	}
	var id [invitationIDBytes]byte
	rand.Read(id[:]) // never fails
	secret, err := invitation.Generate(rand.Reader, hex.EncodeToString(id[:]))
	if err != nil {
		return r, err
	}
	put := &jobpb.PutInvitation{Invitation: &jobpb.Invitation{Id: secret.ID(), PublicKey: secret.PublicKey(), NodeId: q.Node.V}, ExpiresInMs: lasts}
	done, err := s.doOne(x, &jobpb.Op{Kind: &jobpb.Op_PutInvitation{PutInvitation: put}})
	if err != nil {
		return r, err
	}
	x.status = http.StatusCreated
	x.w.Header().Set("Cache-Control", "no-store")
	return wire.Invited{ID: secret.ID(), Invitation: secret.Text(), Node: q.Node.V, ExpiresAt: wire.Time(done.DueMs)}, nil
}

// checkInvited refuses an invitation for a node that is a member, unless that is down: it may have
// lost its data and come back as another server.
func (s *server) checkInvited(x *call, node string) error {
	if node == "" {
		return nil
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	members, err := s.Operator.Members(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(members, func(m *report.Member) bool { return m.Id == node && m.Alive }) {
		return job.Errorf(job.CodeConflict, "node %.40q is a member of this cluster and is alive: it needs no invitation; choose another id for a new node", node).In("node")
	}
	return nil
}

// uninvite handles DELETE /v1/cluster/invitations/{id}.
func (s *server) uninvite(x *call) (r wire.Uninvited, err error) {
	id, err := x.pathValue("id")
	if err != nil {
		return r, err
	}
	if err := job.CheckInvitationID("id", id); err != nil {
		return r, err
	}
	op := &jobpb.Op{Kind: &jobpb.Op_EndInvitation{EndInvitation: &jobpb.EndInvitation{Id: id}}}
	_, err = s.doOne(x, op)
	return wire.Uninvited{ID: id}, err
}
