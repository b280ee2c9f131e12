package api

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"slices"
	"time"

	"tarry/api/wire"
	"tarry/cluster/report"
	"tarry/invitation"
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

// getAdmission handles GET /v1/cluster/admission.
func (s *server) getAdmission(x *call) error {
	a, err := s.readAdmission(x)
	if err != nil {
		return err
	}
	x.json.success()
	x.json.text("mode", wire.AdmissionNames[a.GetMode()])
	x.json.endObject()
	return nil
}

// putAdmission handles PUT /v1/cluster/admission.
func (s *server) putAdmission(x *call) error {
	var q wire.AdmissionRequest
	if err := x.decode(maxSmallRequest, &q); err != nil {
		return err
	}
	if !q.Mode.Set {
		return job.Invalid("mode", "is missing; it takes open or invited")
	}
	mode, err := wire.WordOf("mode", q.Mode, wire.AdmissionNames)
	if err != nil {
		return err
	}
	op := &jobpb.Op{Kind: &jobpb.Op_SetAdmission{SetAdmission: &jobpb.SetAdmission{Mode: jobpb.AdmissionMode(mode)}}}
	return s.apply(x, op, func(*jobpb.Result) {
		x.json.boolean("success", true)
		x.json.text("mode", q.Mode.V)
	})
}

// invitations handles GET /v1/cluster/invitations.
func (s *server) invitations(x *call) error {
	a, err := s.readAdmission(x)
	if err != nil {
		return err
	}
	now := time.Now().UnixMilli()
	x.json.success()
	objects(&x.json, "invitations", a.GetInvitations(), func(v *jobpb.Invitation) {
		x.json.text("id", v.Id)
		x.json.textUnlessEmpty("node", v.NodeId)
		x.json.timestamp("created_at", v.CreatedMs)
		x.json.timestamp("expires_at", v.ExpiresMs)
		x.json.booleanIfTrue("expired", v.ExpiresMs <= now)
		x.json.textUnlessEmpty("used_by", v.ServerId)
		x.json.timestamp("used_at", v.UsedMs)
	})
	x.json.endObject()
	return nil
}

// invitationIDBytes is how many random bytes an id has, in hexadecimal.
const invitationIDBytes = 4

// invite handles POST /v1/cluster/invitations.
func (s *server) invite(x *call) error {
	var q wire.InvitationRequest
	if err := x.decodeOptional(maxSmallRequest, &q); err != nil {
		return err
	}
	lasts, err := job.Millis("expires_in", q.ExpiresIn.Or(job.DefaultInvitationTime.Seconds()), job.MaxInvitationTime)
	if err != nil {
		return err
	}
	if err := s.checkInvited(x, q.Node.V); err != nil {
		return err
	}
	var id [invitationIDBytes]byte
	rand.Read(id[:]) // never fails
	secret, err := invitation.Generate(rand.Reader, hex.EncodeToString(id[:]))
	if err != nil {
		return err
	}
	put := &jobpb.PutInvitation{Invitation: &jobpb.Invitation{Id: secret.ID(), PublicKey: secret.PublicKey(), NodeId: q.Node.V}, ExpiresInMs: lasts}
	r, err := s.doOne(x, &jobpb.Op{Kind: &jobpb.Op_PutInvitation{PutInvitation: put}})
	if err != nil {
		return err
	}
	x.status = http.StatusCreated
	x.w.Header().Set("Cache-Control", "no-store")
	x.json.success()
	x.json.text("id", secret.ID())
	x.json.text("invitation", secret.Text())
	x.json.textUnlessEmpty("node", q.Node.V)
	x.json.timestamp("expires_at", r.DueMs)
	x.json.endObject()
	return nil
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
func (s *server) uninvite(x *call) error {
	id, err := x.pathValue("id")
	if err != nil {
		return err
	}
	if err := job.CheckInvitationID("id", id); err != nil {
		return err
	}
	op := &jobpb.Op{Kind: &jobpb.Op_EndInvitation{EndInvitation: &jobpb.EndInvitation{Id: id}}}
	return s.apply(x, op, func(*jobpb.Result) {
		x.json.boolean("success", true)
		x.json.text("id", id)
	})
}
