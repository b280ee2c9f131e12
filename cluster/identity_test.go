package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const goodIdentity = `{"version": 1, "node_id": "n1", "incarnation": "0123456789abcdef"}`

func TestIdentityIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":                    {"", "is damaged"},
		"cut short":                {goodIdentity[:30], "is damaged"},
		"goes on behind its end":   {goodIdentity + "{}", "is damaged"},
		"zeros":                    {strings.Repeat("\x00", 80), "is damaged"},
		"null":                     {"null", "is damaged"},
		"without an incarnation":   {`{"version": 1, "node_id": "n1"}`, "is damaged"},
		"of a damaged incarnation": {strings.Replace(goodIdentity, "abcdef", "abcd\\u0000f", 1), "is damaged"},
		"of a shorter incarnation": {strings.Replace(goodIdentity, "abcdef", "", 1), "is damaged"},
		"of another node":          {strings.Replace(goodIdentity, "n1", "n2", 1), `belongs to node "n2"`},
		"of a newer release":       {strings.Replace(goodIdentity, "1", "2", 1), "newer release"},
		"of a node that left":      {strings.Replace(goodIdentity, "}", `, "left": true}`, 1), "has left"},
		"larger than any identity": {goodIdentity + strings.Repeat(" ", maxIdentity), "is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "node.json"), []byte(c.text), 0o600))
			_, err := openDataDir(dir, "n1")
			require.ErrorContains(t, err, c.want)
		})
	}
}

// What node.json holds is an identity or is refused; one that is taken gives the
// node a server id of the one form there is.
func FuzzIdentity(f *testing.F) {
	for _, s := range []string{goodIdentity, "null", `{"version":1,"node_id":"n1","incarnation":""}`, `{"version":1,"version":2}`, goodIdentity + "\n"} {
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
