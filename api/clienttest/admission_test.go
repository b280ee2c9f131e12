package clienttest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/client"
)

func TestInvitations(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	ctx := t.Context()
	mode, err := c.Cluster().Admission(ctx)
	require.NoError(t, err)
	require.Equal(t, client.AdmissionOpen, mode)
	require.NoError(t, c.Cluster().SetAdmission(ctx, client.AdmissionInvited))
	mode, err = c.Cluster().Admission(ctx)
	require.NoError(t, err)
	require.Equal(t, client.AdmissionInvited, mode)
	require.ErrorIs(t, c.Cluster().SetAdmission(ctx, "closed"), client.CodeInvalidArgument)

	list, err := c.Cluster().Invitations(ctx)
	require.NoError(t, err)
	require.Empty(t, list)
	made, err := c.Cluster().Invite(ctx, "n4", 10*time.Minute)
	require.NoError(t, err)
	require.Contains(t, made.Invitation, "tarry-invitation_"+made.ID+"_")
	list, err = c.Cluster().Invitations(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "n4", list[0].Node)
	require.Equal(t, made.ExpiresAt, list[0].ExpiresAt)
	require.Equal(t, 10*time.Minute, list[0].ExpiresAt.Sub(list[0].CreatedAt))
	require.Empty(t, list[0].UsedBy)

	require.NoError(t, c.Cluster().Uninvite(ctx, made.ID))
	require.ErrorIs(t, c.Cluster().Uninvite(ctx, made.ID), client.CodeNotFound)
	_, err = c.Cluster().Invite(ctx, "", 0)
	require.NoError(t, err)
	list, err = c.Cluster().Invitations(ctx)
	require.NoError(t, err)
	require.Equal(t, time.Hour, list[0].ExpiresAt.Sub(list[0].CreatedAt))
}
