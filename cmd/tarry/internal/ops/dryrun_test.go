package ops

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

func TestTheDryRunsOfOperators(t *testing.T) {
	s := newOperators(t)
	made := s.OK("cluster", "invite", "--node", "n4")
	id := strings.Fields(strings.Split(s.OK("cluster", "invitations"), "\n")[1])[0]
	for line, says := range map[string]string{
		"cluster join n8:7302":              "n1 is a member of a cluster of 3 nodes; it would gossip with n8:7302",
		"cluster admit n4":                  "n4 could join again",
		"cluster admit n2":                  "nothing keeps it from joining",
		"cluster admission":                 "admission is open",
		"cluster admission open":            "admission is open",
		"cluster admission invited":         "admission would change from open to invited",
		"cluster invite":                    "an invitation for any one node would be made, which ends after 1h0m0s",
		"cluster invite --node n2":          "n2 is a member and alive",
		"cluster invite --node n3":          "an invitation for n3 would be made",
		"cluster uninvite " + id:            "which is valid, would be revoked",
		"cluster clock reset":               "it would be refused, because the queue's clock is 0.012 s ahead of the majority's",
		"keyring install":                   "not yet on those that do not reply: n3",
		"keyring use 0a1b2c3d4e5f6071":      "encrypts already",
		"keyring use 8090a0b0c0d0e0f0":      "would encrypt with key 8090a0b0c0d0e0f0 instead of 0a1b2c3d4e5f6071",
		"keyring remove 0a1b2c3d4e5f6071":   "it would be refused, because key 0a1b2c3d4e5f6071 encrypts now",
		"keyring remove 8090a0b0c0d0e0f0":   "these nodes do not reply or encrypt with another key than 0a1b2c3d4e5f6071: n3",
		"cluster transfer-leadership n2":    "leadership would move from n1 to n2",
		"cluster transfer-leadership n3 -j": `{"dry_run":true,"plan":"it would fail, because n3 is not alive"}`,
	} {
		out := s.OK(append(strings.Fields(line), "--dry-run")...)
		require.Contains(t, out, says, line)
		if !strings.Contains(line, "-j") {
			require.True(t, strings.HasPrefix(out, "nothing was done: "), out)
		}
	}
	for line, code := range map[string]int{
		"cluster uninvite 00000000":           cli.ExitNotFound,
		"keyring use 0000000000000000":        cli.ExitNotFound,
		"keyring remove 0000000000000000":     cli.ExitNotFound,
		"cluster transfer-leadership n9":      cli.ExitNotFound,
		"cluster admission closed":            cli.ExitUsage,
		"cluster invite --expires-in 40d":     cli.ExitUsage,
		"cluster join n8:7302 --addr a:1,b:1": cli.ExitUsage,
	} {
		got, _, errs := s.Run(append(strings.Fields(line), "--dry-run")...)
		require.Equal(t, code, got, "%s: %s", line, errs)
	}
	require.Empty(t, s.Operator.Calls())
	require.Equal(t, "admission: open\n", s.OK("cluster", "admission"))
	require.Contains(t, s.OK("cluster", "invitations"), id, "one invitation was made, and is still valid: %s", made)
	require.Len(t, strings.Split(strings.TrimSpace(s.OK("cluster", "invitations")), "\n"), 2)
}

func TestWhatKeepsAKeyFromBeingUsed(t *testing.T) {
	k := client.Keyring{Keys: []string{"a", "b"}, Nodes: []client.NodeKeys{{ID: "n1", Keys: []string{"a", "b"}}, {ID: "n2", Keys: []string{"a"}}, {ID: "n3", Error: "away"}}}
	require.Equal(t, "n2", nodesThat(k, func(n client.NodeKeys) bool { return n.Error == "" && len(n.Keys) == 1 }))
	require.Empty(t, nodesThat(k, func(client.NodeKeys) bool { return false }))
}

// A command of an operator that changes something has a dry run, so that it can be tried safely.
func TestEachCommandThatChangesTheClusterHasADryRun(t *testing.T) {
	reads := map[string]bool{
		"members": true, "health": true, "events": true, "version": true, "upgrade": true, "clock": true, "verify": true, "removed": true, "invitations": true, "list": true, "status": true,
	}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if !c.HasSubCommands() && !reads[c.Name()] {
			require.NotNil(t, c.Flags().Lookup("dry-run"), c.Name())
		}
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk(ClusterCommand())
	walk(KeyringCommand())
	walk(StandbyCommand())
}
