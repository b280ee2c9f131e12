//go:build !chaos

package hook_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A default build must not know the environment by which a harness reaches in.
// The build with the tag shows that the test can see it.
func TestDefaultBinaryHasNoHooks(t *testing.T) {
	for tags, has := range map[string]bool{"": false, "chaos": true} {
		binary := filepath.Join(t.TempDir(), "tarry")
		build := exec.Command("go", "build", "-tags", tags, "-o", binary, "tarry/cmd/tarry")
		out, err := build.CombinedOutput()
		require.NoError(t, err, "%s", out)
		data, err := os.ReadFile(binary)
		require.NoError(t, err)
		require.Equal(t, has, bytes.Contains(data, []byte("TARRY_HOOK_")), "tags %q", tags)
	}
}
