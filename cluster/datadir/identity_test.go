package datadir

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// identityText returns an identity as it is in its file.
func identityText(t testing.TB, change func(*identity)) string {
	i := identity{Version: identityVersion, NodeID: "n1", Incarnation: "0123456789abcdef"}
	change(&i)
	data, err := i.encode()
	require.NoError(t, err)
	return string(data)
}

func TestIdentityIsRefused(t *testing.T) {
	good := identityText(t, func(*identity) {})
	for name, c := range map[string]struct{ text, want string }{
		"empty":                    {"", "is damaged"},
		"cut short":                {good[:30], "is damaged"},
		"goes on behind its end":   {good + "{}", "is damaged"},
		"zeros":                    {strings.Repeat("\x00", 80), "is damaged"},
		"null":                     {"null", "is damaged"},
		"without an incarnation":   {identityText(t, func(i *identity) { i.Incarnation = "" }), "is damaged"},
		"of a damaged incarnation": {strings.Replace(good, "abcdef", "abcd\\u0000f", 1), "is damaged"},
		"of a shorter incarnation": {identityText(t, func(i *identity) { i.Incarnation = "0123456789" }), "is damaged"},
		"of another node":          {identityText(t, func(i *identity) { i.NodeID = "n2" }), `belongs to node "n2"`},
		"of a newer release":       {identityText(t, func(i *identity) { i.Version++ }), "newer release"},
		"of an older release":      {identityText(t, func(i *identity) { i.Version-- }), "older release"},
		"of another name by a bit": {strings.Replace(good, "n1", "n3", 1), "is damaged"},
		"of a node that left":      {identityText(t, func(i *identity) { i.Left = true }), "has left"},
		"larger than any identity": {good + strings.Repeat(" ", maxIdentity), "is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "node.json"), []byte(c.text), 0o600))
			_, err := Open(dir, "n1", "")
			require.ErrorContains(t, err, c.want)
		})
	}
}

// A disk that lost the sectors of node.json is damage, of which a person must be told the way out.
func TestAnIdentityThatTheDiskCannotReadIsDamage(t *testing.T) {
	dir := t.TempDir()
	if runtime.GOOS != "linux" {
		t.Skip("it needs a file that cannot be read")
	}
	require.NoError(t, os.Symlink("/proc/self/mem", filepath.Join(dir, "node.json"))) // its first page is never mapped
	_, err := Open(dir, "n1", "")
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorIs(t, err, ErrUnusable)
	require.ErrorContains(t, err, "start the node again with --join")
}

// The content of node.json is an identity or is refused. An identity that is accepted has a
// well-formed server id.
func FuzzIdentity(f *testing.F) {
	for _, s := range []string{identityText(f, func(*identity) {}), "null", `{"version":1,"node_id":"n1","incarnation":""}`, `{"version":1,"version":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		id, err := decodeIdentity(data)
		if err != nil {
			require.Zero(t, id)
			require.Less(t, len(err.Error()), 500)
			return
		}
		if id.Version == identityVersion {
			require.Regexp(t, `^[0-9a-f]{16}$`, id.Incarnation)
		}
	})
}

// A directory keeps the log store with which it was made.
func TestALogStoreIsChosenOnce(t *testing.T) {
	for _, c := range []struct{ made, then, got, refused string }{
		{made: "", then: "", got: "raft-wal"},
		{made: "", then: "raft-wal", got: "raft-wal"},
		{made: "raft-wal", then: "", got: "raft-wal"},
		{made: "raft-boltdb", then: "", got: "raft-boltdb"},
		{made: "raft-boltdb", then: "raft-boltdb", got: "raft-boltdb"},
		{made: "raft-boltdb", then: "raft-wal", refused: "was made with --log-store raft-boltdb, but --log-store is raft-wal"},
		{made: "", then: "raft-boltdb", refused: "was made with --log-store raft-wal, but --log-store is raft-boltdb"},
	} {
		dir := t.TempDir()
		d, err := Open(dir, "n1", c.made)
		require.NoError(t, err)
		require.NoError(t, d.Close())
		data, err := os.ReadFile(filepath.Join(dir, "node.json"))
		require.NoError(t, err)
		require.Equal(t, c.made == "raft-boltdb", strings.Contains(string(data), "log_store"), "the previous release reads it")
		d, err = Open(dir, "n1", c.then)
		if c.refused != "" {
			require.ErrorContains(t, err, c.refused)
			require.ErrorContains(t, err, dir)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.got, d.LogStore())
		require.NoError(t, d.Close())
	}
}
