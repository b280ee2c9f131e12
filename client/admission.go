package client

import (
	"context"
	"net/http"
	"time"
)

const (
	admissionPath   = "/v1/cluster/admission"
	invitationsPath = "/v1/cluster/invitations"
)

// What a node needs to become a member of the cluster.
const (
	// AdmissionOpen is no more than to find the cluster.
	AdmissionOpen = "open"
	// AdmissionInvited is a certificate of the cluster, or an invitation.
	AdmissionInvited = "invited"
)

// Invitation is an invitation without its text, which is stored nowhere.
type Invitation struct {
	ID        string    `json:"id"`
	Node      string    `json:"node,omitzero"` // that may use it; empty: any
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Expired   bool      `json:"expired,omitzero"`
	UsedBy    string    `json:"used_by,omitzero"` // the server that has used it: its node, a dot and its incarnation
	UsedAt    time.Time `json:"used_at,omitzero"`
}

// Invited is an invitation that was just made.
type Invited struct {
	ID string `json:"id"`
	// Invitation is its text, which is shown this once.
	Invitation string    `json:"invitation,omitzero"`
	Node       string    `json:"node,omitzero"`
	ExpiresAt  time.Time `json:"expires_at"`
}

// Admission returns what a node needs to become a member: AdmissionOpen or AdmissionInvited.
func (c Cluster) Admission(ctx context.Context) (string, error) {
	a, err := read[admission](ctx, c.client, admissionPath)
	return a.Mode, err
}

// SetAdmission sets what a node needs to become a member.
func (c Cluster) SetAdmission(ctx context.Context, mode string) error {
	_, err := ask[admission](ctx, c.client, request{method: http.MethodPut, path: admissionPath, in: admission{mode}, repeat: true})
	return err
}

// Invite makes an invitation, with which one node may become a member: the node, or any if that
// is empty. It is valid for the time of lasts; 0: an hour. It is not repeated when its outcome is
// unknown, because the text would be lost.
func (c Cluster) Invite(ctx context.Context, node string, lasts time.Duration) (Invited, error) {
	in := struct {
		Node      string  `json:"node,omitzero"`
		ExpiresIn float64 `json:"expires_in,omitzero"`
	}{node, lasts.Seconds()}
	return ask[Invited](ctx, c.client, request{method: http.MethodPost, path: invitationsPath, in: in})
}

// Invitations lists the invitations by their ids.
func (c Cluster) Invitations(ctx context.Context) ([]Invitation, error) {
	list, err := read[invitationList](ctx, c.client, invitationsPath)
	return list.Invitations, err
}

// Uninvite revokes an invitation. A node that has used it stays a member.
func (c Cluster) Uninvite(ctx context.Context, id string) error {
	return c.client.end(ctx, http.MethodDelete, invitationsPath+"/"+segment(id), nil, new(done))
}
