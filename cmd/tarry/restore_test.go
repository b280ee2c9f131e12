package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A directory whose id no server accepts would be of no use.
func TestRestoreTakesTheNodeIDsOfAServer(t *testing.T) {
	for id, says := range map[string]string{
		"":                      "needs --node-id",
		strings.Repeat("n", 65): "--node-id has 65 bytes; it takes 1 to 64",
		"n\x001":                "--node-id",
		"n\xff":                 "--node-id",
	} {
		dir := filepath.Join(t.TempDir(), "data")
		var errs bytes.Buffer
		code := run(t.Context(), []string{"restore", "no-such-file", "--data-dir", dir, "--node-id", id}, strings.NewReader(""), &bytes.Buffer{}, &errs)
		require.Equal(t, 2, code, errs.String())
		require.Contains(t, errs.String(), says)
		require.NoDirExists(t, dir)
	}
}
