package cluster

import (
	"fmt"

	"tarry/cluster/nodetls"
	"tarry/internal/invitation"
	"tarry/job/jobpb"
)

// invitation returns the reader of this node's invitation; nil: it has none. A node that is in a
// cluster needs none. The file is read each time, so an operator can replace it.
func (n *Node) invitation() func() (invitation.Secret, error) {
	if n.cfg.JoinInvitationFile == "" || n.hasState {
		return nil
	}
	return func() (invitation.Secret, error) { return invitation.ReadFile(n.cfg.JoinInvitationFile) }
}

// opensToAnyNode reports whether tokens keep clients out, and nothing keeps nodes out.
func (n *Node) opensToAnyNode() bool {
	return n.shard.machine.Auth().Mode() == jobpb.AuthMode_AUTH_ENFORCE && n.AdmissionMode() == jobpb.AdmissionMode_ADMISSION_OPEN && n.cfg.TLS.Mode != nodetls.Require
}

// checkInvitation returns an error if this node needs the file and cannot read it.
func (n *Node) checkInvitation() error {
	read := n.invitation()
	if read == nil {
		return nil
	}
	if _, err := read(); err != nil {
		return fmt.Errorf("the invitation (--join-invitation-file): %w", err)
	}
	return nil
}
