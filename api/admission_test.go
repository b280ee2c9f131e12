package api

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/invitation"
	"tarry/job"
)

func TestTheAdmissionIsSetAndShown(t *testing.T) {
	r := newRig(t)
	require.JSONEq(t, `{"success":true,"mode":"open"}`, r.do("GET", "/v1/cluster/admission", "").Body.String())
	require.JSONEq(t, `{"success":true,"mode":"invited"}`, r.do("PUT", "/v1/cluster/admission", `{"mode":"invited"}`).Body.String())
	require.JSONEq(t, `{"success":true,"mode":"invited"}`, r.do("GET", "/v1/cluster/admission", "").Body.String())
	refused(t, r.do("PUT", "/v1/cluster/admission", `{"mode":"closed"}`), 400, job.CodeInvalid, "open")
	refused(t, r.do("PUT", "/v1/cluster/admission", `{}`), 400, job.CodeInvalid, "mode")
}

// shownInvitation is an invitation as it is listed.
type shownInvitation struct {
	ID        string    `json:"id"`
	Node      string    `json:"node"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	UsedBy    string    `json:"used_by"`
}

func (r *rig) invitations() []shownInvitation {
	var out struct {
		Invitations []shownInvitation `json:"invitations"`
	}
	w := r.do("GET", "/v1/cluster/invitations", "")
	require.NoError(r.t, json.Unmarshal(w.Body.Bytes(), &out), w.Body.String())
	require.NotNil(r.t, out.Invitations)
	return out.Invitations
}

func TestAnInvitationIsShownOnceAndRevoked(t *testing.T) {
	r := newRig(t)
	require.Empty(t, r.invitations())
	w := r.do("POST", "/v1/cluster/invitations", `{"node":"n4","expires_in":600}`)
	require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	var made struct {
		ID, Invitation, Node string
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &made))
	secret, err := invitation.Parse(made.Invitation)
	require.NoError(t, err)
	require.Equal(t, secret.ID(), made.ID)
	require.Equal(t, "n4", made.Node)

	list := r.invitations()
	require.Len(t, list, 1)
	require.Equal(t, made.ID, list[0].ID)
	require.Equal(t, 600*time.Second, list[0].ExpiresAt.Sub(list[0].CreatedAt))
	require.NotContains(t, r.do("GET", "/v1/cluster/invitations", "").Body.String(), made.Invitation)

	require.Equal(t, http.StatusOK, r.do("DELETE", "/v1/cluster/invitations/"+made.ID, "").Code)
	require.Empty(t, r.invitations())
	refused(t, r.do("DELETE", "/v1/cluster/invitations/"+made.ID, ""), 404, job.CodeNotFound, made.ID)
	refused(t, r.do("DELETE", "/v1/cluster/invitations/UPPER", ""), 400, job.CodeInvalid, "id")
}

// A member that is down may have lost its data.
func TestNoInvitationIsMadeForAMemberThatIsAlive(t *testing.T) {
	r := newRig(t)
	refused(t, r.do("POST", "/v1/cluster/invitations", `{"node":"n2"}`), 409, job.CodeConflict, `"n2" is a member`)
	require.Empty(t, r.invitations())
	require.Equal(t, http.StatusCreated, r.do("POST", "/v1/cluster/invitations", `{"node":"n3"}`).Code)
}

func TestAnInvitationLastsAnHourUnlessTold(t *testing.T) {
	r := newRig(t)
	require.Equal(t, http.StatusCreated, r.do("POST", "/v1/cluster/invitations", "").Code)
	list := r.invitations()
	require.Len(t, list, 1)
	require.Empty(t, list[0].Node)
	require.Equal(t, job.DefaultInvitationTime, list[0].ExpiresAt.Sub(list[0].CreatedAt))
	refused(t, r.do("POST", "/v1/cluster/invitations", `{"expires_in":0}`), 400, job.CodeInvalid, "expires_in")
	refused(t, r.do("POST", "/v1/cluster/invitations", `{"expires_in":2592001}`), 400, job.CodeInvalid, "expires_in")
	refused(t, r.do("POST", "/v1/cluster/invitations", `{"node":"a\u0001"}`), 400, job.CodeInvalid, "node")
}
