package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
)

func TestRecoverPeersMakesAFile(t *testing.T) {
	s := newShell(t)
	dir := t.TempDir()
	write := func(node string, last int) string {
		path := filepath.Join(dir, node+".json")
		text := fmt.Sprintf(`{"node_id":%[1]q,"server_id":"%[1]s.aa","cluster_id":"c","applied_index":5,"last_index":%d,"last_term":2,"vote_term":3,"members":[`+
			`{"server_id":"n1.aa","address":"h1:7301","voter":true},{"server_id":"n2.aa","address":"h2:7301","voter":true},{"server_id":"n3.aa","address":"h3:7301","voter":true},`+
			`{"server_id":"n4.aa","address":"h4:7301","voter":true},{"server_id":"n5.aa","address":"h5:7301","voter":true}],"jobs":7}`, node, last)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	n3, n4, n5 := write("n3", 7), write("n4", 8), write("n5", 9)
	code, out, errs := s.Run("recover", "peers", n4, n5)
	require.Equal(t, cli.ExitOK, code, errs)
	require.JSONEq(t, `{"version":1,"cluster_id":"c","nodes":[`+
		`{"server_id":"n4.aa","address":"h4:7301","applied_index":5,"last_index":8,"last_term":2,"vote_term":3},`+
		`{"server_id":"n5.aa","address":"h5:7301","applied_index":5,"last_index":9,"last_term":2,"vote_term":3}]}`, out)
	code, _, errs = s.Run("recover", "peers", n3, n4, n5)
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "they are a majority")

	for says, args := range map[string][]string{
		"takes the files of two nodes or more":         {"peers", n4},
		"takes --as-only-voter or --peers":             {"--data-dir", dir, "--as-only-voter", "--peers", n4},
		"--yes and --dry-run need":                     {"--data-dir", dir, "--dry-run"},
		"needs --data-dir, the directory of a stopped": {"--peers", n4},
	} {
		code, _, errs := s.Run(append([]string{"recover"}, args...)...)
		require.Equal(t, cli.ExitUsage, code, errs)
		require.Contains(t, errs, says)
	}
	code, _, errs = s.Run("recover", "--data-dir", dir, "--peers", n4)
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "has version 0, and this release knows version 1")
}
