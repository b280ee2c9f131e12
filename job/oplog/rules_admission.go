package oplog

import (
	"crypto/ed25519"

	"tarry/job"
	"tarry/job/jobpb"
)

// The rules of who may become a member; see CheckOp.

func checkPutInvitation(l *job.Limits, op *jobpb.PutInvitation) error {
	v := op.Invitation
	if v == nil {
		return job.Invalid("id", "is missing")
	}
	if err := l.CheckTokenID("id", v.Id); err != nil {
		return err
	}
	switch {
	case len(v.PublicKey) != ed25519.PublicKeySize:
		return job.Invalid("public_key", "has %d bytes; it takes %d", len(v.PublicKey), ed25519.PublicKeySize)
	case v.CreatedMs != 0 || v.ExpiresMs != 0 || v.ServerId != "" || v.UsedMs != 0:
		return job.Invalid("id", "has fields that only the state machine sets")
	}
	if v.NodeId != "" {
		if err := l.CheckRefID("node", v.NodeId); err != nil {
			return err
		}
	}
	return job.WithinSeconds("expires_in", op.ExpiresInMs, 1000, l.MaxInvitationTime)
}

func checkEndInvitation(l *job.Limits, op *jobpb.EndInvitation) error {
	if err := l.CheckTokenID("id", op.Id); err != nil || op.ServerId == "" {
		return err
	}
	return l.CheckRefID("server_id", op.ServerId)
}

func checkSetAdmission(l *job.Limits, op *jobpb.SetAdmission) error {
	if op.Mode < 0 || op.Mode > jobpb.AdmissionMode_ADMISSION_INVITED {
		return job.Invalid("mode", "is not known; it takes open or invited")
	}
	return nil
}

func checkForgetMember(l *job.Limits, op *jobpb.ForgetMember) error {
	if err := l.CheckRefID("server_id", op.ServerId); err != nil || op.NodeId == "" {
		return err
	}
	return l.CheckRefID("node_id", op.NodeId)
}
