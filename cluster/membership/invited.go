package membership

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/memberpb"
	"tarry/cluster/raftconfig"
	"tarry/internal/invitation"
	"tarry/job"
	"tarry/job/jobpb"
)

// In the mode "invited" the leader takes in a server only if it has shown a certificate of the
// cluster or an invitation, which an operator has made. Certificates count where all calls are
// over TLS: then the leader has asked the server for its status over a connection that names its
// node. Elsewhere the leader asks for a proof that is good for this question alone, and records
// in the log that this server uses the invitation before it adds the server: so no other one gets
// in by it, whoever leads. A server that is in the configuration is asked for nothing.

// errUninvited is the refusal of a server. It is the same whatever is wrong: a stranger learns
// nothing of the invitations. The leader's log and events say what it was.
var errUninvited = errors.New("the cluster takes in only nodes that show it a certificate, or an invitation that is valid and unused; make one with \"tarry cluster invite\" on another node, " +
	"and start this one with --join-invitation-file; the log of the cluster's leader, and its tarry cluster events, say what was wrong")

// notInvited is an error of a server that must not join before it has an invitation.
type notInvited struct{ why error }

func (e notInvited) Error() string {
	return fmt.Sprintf("it has no certificate that counts and no valid invitation: %v", e.why)
}

func (e notInvited) Unwrap() error { return e.why }

// admission returns who may become a member.
func (m *Membership) admission() *jobpb.Admission { return m.cfg.Facts.Admission() }

// needsInvitation reports whether a server that is no member must show an invitation.
func (m *Membership) needsInvitation() bool {
	return m.admission().GetMode() == jobpb.AdmissionMode_ADMISSION_INVITED && !m.cfg.SecureCalls
}

// checkInvitation asks a server for a proof of its invitation, and returns which one it has;
// empty: it needs none. It changes nothing. The error is a notInvited, or why the server could
// not be asked.
func (m *Membership) checkInvitation(ctx context.Context, n gossip.Member) (id string, err error) {
	if !m.needsInvitation() {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := m.client(ctx, n.ServerID, n.ClusterAddr)
	if err != nil {
		return "", err
	}
	p := invitation.Proof{Cluster: m.cfg.Facts.ClusterID(), Leader: m.cfg.ServerID, Server: n.ServerID, Address: n.ClusterAddr, Nonce: make([]byte, invitation.NonceBytes)}
	rand.Read(p.Nonce) // never fails
	resp, err := c.Prove(ctx, &memberpb.ProveRequest{ServerId: p.Leader, ClusterId: p.Cluster, Invited: p.Server, Nonce: p.Nonce})
	if err != nil {
		return "", fmt.Errorf("ask it for its invitation: %w", err)
	}
	if err := m.checkProof(p, resp); err != nil {
		return "", notInvited{err}
	}
	return resp.Invitation, nil
}

// checkProof returns what is wrong with a reply. The state machine decides when the use is
// recorded; but a server without a valid invitation must not get so far.
func (m *Membership) checkProof(p invitation.Proof, resp *memberpb.ProveResponse) error {
	if resp.Invitation == "" {
		return errors.New("it shows none")
	}
	v := m.invitationOf(resp.Invitation)
	switch {
	case v == nil:
		return fmt.Errorf("there is no invitation with the id %.40q: it was revoked, or has expired", resp.Invitation)
	case !invitation.Verify(v.PublicKey, p, resp.Signature):
		return fmt.Errorf("its proof for invitation %q is wrong", v.Id)
	case v.ServerId == p.Server:
		return nil // the leader that recorded it did not add the server
	case v.ServerId != "":
		return fmt.Errorf("invitation %q was used by server %q", v.Id, v.ServerId)
	case v.ExpiresMs <= m.cfg.Clocks.Queue().UnixMilli():
		return fmt.Errorf("invitation %q has expired", v.Id)
	case v.NodeId != "" && v.NodeId != raftconfig.NodeID(p.Server):
		return fmt.Errorf("invitation %q is for node %q", v.Id, v.NodeId)
	}
	return nil
}

// invitationOf returns an invitation by its id; nil: there is none.
func (m *Membership) invitationOf(id string) *jobpb.Invitation {
	for _, v := range m.admission().GetInvitations() {
		if v.Id == id {
			return v
		}
	}
	return nil
}

// useInvitation records in the log that a server uses the invitation that checkInvitation has
// returned, once.
func (m *Membership) useInvitation(ctx context.Context, id string, n gossip.Member) error {
	if id == "" || m.invitationOf(id).GetServerId() == n.ServerID {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	err := m.cfg.Decisions.UseInvitation(ctx, id, n.ServerID)
	switch job.CodeOf(err) {
	case job.CodeNotFound, job.CodeConditionFailed: // it was revoked or has expired meanwhile
		return notInvited{err}
	}
	if err != nil {
		return fmt.Errorf("record the use of its invitation: %w", err)
	}
	m.cfg.Logger.Info("node uses an invitation", "other_node", n.NodeID, "server", n.ServerID, "invitation", id)
	if m.cfg.InvitationUsed != nil {
		m.cfg.InvitationUsed(id, n.NodeID)
	}
	return nil
}

// turnedAway keeps why servers may not join, and logs what is new of it. It is no problem of
// the cluster: any stranger whom gossip lets in could make one.
func (m *Membership) turnedAway(l *leadership, uninvited map[string]string) {
	var before map[string]string
	if last := l.uninvited.Swap(&uninvited); last != nil {
		before = *last
	}
	for server, why := range uninvited {
		if before[server] != why {
			m.cfg.Logger.Warn("a node may not join", "other_node", raftconfig.NodeID(raft.ServerID(server)), "server", server, "because", why)
		}
	}
}

// uninvitedWait reports whether this node leads and servers wait for an invitation.
func (m *Membership) uninvitedWait() bool {
	l := m.leadership.Load()
	if l == nil {
		return false
	}
	refused := l.uninvited.Load()
	return refused != nil && len(*refused) > 0
}

// uninvited reports whether this node leads, and has found in its last pass that a server must
// not join without an invitation.
func (m *Membership) uninvited(serverID string) bool {
	l := m.leadership.Load()
	if l == nil {
		return false
	}
	refused := l.uninvited.Load()
	return refused != nil && (*refused)[serverID] != ""
}

// prove answers a leader that asks this node for its invitation. A node that is in a cluster
// proves nothing.
func (m *Membership) prove(req *memberpb.ProveRequest) *memberpb.ProveResponse {
	ours := m.ClusterID()
	if req.Invited != m.cfg.ServerID || m.hasState() || ours != "" && ours != req.ClusterId || len(req.Nonce) != invitation.NonceBytes || m.cfg.Invitation == nil {
		return &memberpb.ProveResponse{}
	}
	s, err := m.cfg.Invitation()
	if err != nil {
		m.cfg.Logger.Warn("this node's invitation cannot be used", "error", err)
		return &memberpb.ProveResponse{}
	}
	p := invitation.Proof{Cluster: req.ClusterId, Leader: req.ServerId, Server: m.cfg.ServerID, Address: m.cfg.ClusterAddr, Nonce: req.Nonce}
	return &memberpb.ProveResponse{Invitation: s.ID(), Signature: s.Sign(p)}
}
