package api

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"slices"
	"time"

	"tarry/api/wire"
	"tarry/cluster/report"
	"tarry/internal/invitation"
	"tarry/job"
	"tarry/job/jobpb"
)

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
