package job

import (
	"crypto/ed25519"

	"tarry/job/jobpb"
)

// The rules of who may become a member; see CheckOp.

// CheckInvitationID checks the id of an invitation, by the rule for the id of a token.
func CheckInvitationID(field, id string) error { return Newest().CheckTokenID(field, id) }

func (l *Limits) checkPutInvitation(op *jobpb.PutInvitation) error {
	v := op.Invitation
	if v == nil {
		return Invalid("id", "is missing")
	}
	if err := l.CheckTokenID("id", v.Id); err != nil {
		return err
	}
	switch {
	case len(v.PublicKey) != ed25519.PublicKeySize:
		return Invalid("public_key", "has %d bytes; it takes %d", len(v.PublicKey), ed25519.PublicKeySize)
	case v.CreatedMs != 0 || v.ExpiresMs != 0 || v.ServerId != "" || v.UsedMs != 0:
		return Invalid("id", "has fields that only the state machine sets")
	}
	if v.NodeId != "" {
		if err := l.CheckRefID("node", v.NodeId); err != nil {
			return err
		}
	}
	return withinSeconds("expires_in", op.ExpiresInMs, 1000, l.MaxInvitationTime)
}

func (l *Limits) checkEndInvitation(op *jobpb.EndInvitation) error {
	if err := l.CheckTokenID("id", op.Id); err != nil || op.ServerId == "" {
		return err
	}
	return l.CheckRefID("server_id", op.ServerId)
}

func (l *Limits) checkSetAdmission(op *jobpb.SetAdmission) error {
	if op.Mode < 0 || op.Mode > jobpb.AdmissionMode_ADMISSION_INVITED {
		return Invalid("mode", "is not known; it takes open or invited")
	}
	return nil
}
