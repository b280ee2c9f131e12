package ops

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
)

func TestKeyringCommands(t *testing.T) {
	s := clitest.NewShellOf(t, opsRoot)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"list"}, "n1  4         0a1b2c3d4e5f6071 8090a0b0c0d0e0f0  -\n"},
		{[]string{"install"}, "installed key 8090a0b0c0d0e0f0: 2 of 3 nodes\n"},
		{[]string{"use", "8090a0b0c0d0e0f0"}, "nodes encrypt with key 8090a0b0c0d0e0f0: 2 of 3 nodes\n"},
		{[]string{"remove", "0a1b2c3d4e5f6071"}, "removed key 0a1b2c3d4e5f6071: 2 of 3 nodes\n"},
		{[]string{"install", "--json"}, `"changed":"8090a0b0c0d0e0f0"`},
	} {
		code, out, errs := s.Run(append([]string{"keyring"}, c.args...)...)
		require.Equal(t, cli.ExitFailed, code, "a node lacks the change")
		require.Contains(t, out, c.says)
		require.Contains(t, errs, "1 of 3 nodes do not have the keys of the leader")
	}
	require.Equal(t, []string{"keyring 1", "keyring 2 8090a0b0c0d0e0f0", "keyring 3 0a1b2c3d4e5f6071", "keyring 1"}, s.Operator.Calls())
	code, _, errs := s.Run("keyring", "use")
	require.Equal(t, cli.ExitUsage, code, errs)
}
