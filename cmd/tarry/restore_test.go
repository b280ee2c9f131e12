package main

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cluster/backup"
	"tarry/cmd/tarry/internal/clitest"
)

// A damaged file is found before the cluster, which does not even run here, has any work.
func TestRestoreReplaceFirstReadsTheFile(t *testing.T) {
	dir := t.TempDir()
	var whole bytes.Buffer
	w, err := backup.NewWriter(&whole, backup.Header{ClusterID: "c1", NodeID: "n1", Index: 7, Term: 1, StateBytes: 4 << 20})
	require.NoError(t, err)
	state := make([]byte, 4<<20) // of several blocks, and random: it does not compress
	_, _ = rand.Read(state)
	_, err = w.Write(state)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	damaged := bytes.Clone(whole.Bytes())
	damaged[len(damaged)-1<<20] ^= 1
	for name, c := range map[string]struct {
		file []byte
		says string
	}{
		"damaged": {damaged, "nothing was done"},
		"cut off": {whole.Bytes()[:whole.Len()/2], "the backup is damaged"},
		"whole":   {whole.Bytes(), "no node answered"}, // it comes as far as the cluster
	} {
		t.Run(name, func(t *testing.T) {
			file, safety := filepath.Join(dir, "of.backup"), filepath.Join(dir, "safety.backup")
			require.NoError(t, os.WriteFile(file, c.file, 0o600))
			var errs bytes.Buffer
			args := []string{"restore", file, "--replace", "--yes", "--addr", clitest.FreeAddr(t), "--patience", "0s", "--safety-backup", safety}
			require.NotZero(t, run(t.Context(), args, strings.NewReader(""), &bytes.Buffer{}, &errs))
			require.Contains(t, errs.String(), c.says)
			if name != "whole" {
				require.Contains(t, errs.String(), "nothing was done")
				require.NotContains(t, errs.String(), "no node answered")
			}
			require.NoFileExists(t, safety)
		})
	}
}

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
