package ops

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
	"tarry/internal/invitation"
)

func TestTheAdmissionIsShownAndSet(t *testing.T) {
	s := clitest.NewShellOf(t, opsRoot)
	require.Equal(t, "admission: open\n", s.OK("cluster", "admission"))
	require.Equal(t, "admission: invited\n", s.OK("cluster", "admission", "invited"))
	require.JSONEq(t, `{"admission":"invited"}`, s.OK("cluster", "admission", "--json"))
	code, _, errs := s.Run("cluster", "admission", "closed")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "it takes open or invited")
}

func TestAnInvitationIsPrintedOnce(t *testing.T) {
	s := clitest.NewShellOf(t, opsRoot)
	require.Empty(t, s.OK("cluster", "invitations", "--json"))
	code, out, errs := s.Run("cluster", "invite", "--node", "n4", "--expires-in", "10m")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, errs, "its text is shown this once")
	secret, err := invitation.Parse(strings.TrimSpace(out))
	require.NoError(t, err)
	require.Regexp(t, `(?m)^`+secret.ID()+` +n4 +valid `, s.OK("cluster", "invitations"))
	require.NotContains(t, s.OK("cluster", "invitations", "--json"), strings.TrimSpace(out))

	require.Equal(t, "revoked\n", s.OK("cluster", "uninvite", secret.ID()))
	code, _, errs = s.Run("cluster", "uninvite", secret.ID())
	require.NotEqual(t, cli.ExitOK, code)
	require.Contains(t, errs, "there is no invitation with the id")
}

func TestAnInvitationInAFileIsItsOwnersAlone(t *testing.T) {
	s := clitest.NewShellOf(t, opsRoot)
	file := filepath.Join(t.TempDir(), "n4.invitation")
	var made client.Invited
	require.NoError(t, json.Unmarshal([]byte(s.OK("cluster", "invite", "-o", file, "--json")), &made))
	require.Empty(t, made.Invitation, "it is in the file alone")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	secret, err := invitation.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, made.ID, secret.ID())

	code, _, errs := s.Run("cluster", "invite", "-o", file)
	require.Equal(t, cli.ExitUsage, code, errs)
	require.Equal(t, 1, strings.Count(s.OK("cluster", "invitations", "--json"), "\n"), "an existing file is found before an invitation is made")
}
