package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/client"
	"tarry/internal/invitation"
)

func TestTheAdmissionIsShownAndSet(t *testing.T) {
	s := newShell(t)
	require.Equal(t, "admission: open\n", s.ok("cluster", "admission"))
	require.Equal(t, "admission: invited\n", s.ok("cluster", "admission", "invited"))
	require.JSONEq(t, `{"admission":"invited"}`, s.ok("cluster", "admission", "--json"))
	code, _, errs := s.run("cluster", "admission", "closed")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "it takes open or invited")
}

func TestAnInvitationIsPrintedOnce(t *testing.T) {
	s := newShell(t)
	require.Empty(t, s.ok("cluster", "invitations", "--json"))
	code, out, errs := s.run("cluster", "invite", "--node", "n4", "--expires-in", "10m")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, errs, "its text is shown this once")
	secret, err := invitation.Parse(strings.TrimSpace(out))
	require.NoError(t, err)
	require.Regexp(t, `(?m)^`+secret.ID()+` +n4 +valid `, s.ok("cluster", "invitations"))
	require.NotContains(t, s.ok("cluster", "invitations", "--json"), strings.TrimSpace(out))

	require.Equal(t, "revoked\n", s.ok("cluster", "uninvite", secret.ID()))
	code, _, errs = s.run("cluster", "uninvite", secret.ID())
	require.NotEqual(t, exitOK, code)
	require.Contains(t, errs, "there is no invitation with the id")
}

func TestAnInvitationInAFileIsItsOwnersAlone(t *testing.T) {
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "n4.invitation")
	var made client.Invited
	require.NoError(t, json.Unmarshal([]byte(s.ok("cluster", "invite", "-o", file, "--json")), &made))
	require.Empty(t, made.Invitation, "it is in the file alone")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	secret, err := invitation.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, made.ID, secret.ID())

	code, _, errs := s.run("cluster", "invite", "-o", file)
	require.Equal(t, exitUsage, code, errs)
	require.Equal(t, 1, strings.Count(s.ok("cluster", "invitations", "--json"), "\n"), "an existing file is found before an invitation is made")
}
