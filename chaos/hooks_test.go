package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A default build must not know the environment by which a harness reaches in. The
// build with the tag shows that the test can see it.
func TestDefaultBinaryHasNoHooks(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "tarry")
	out, err := exec.Command("go", "build", "-o", plain, "tarry/cmd/tarry").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for path, has := range map[string]bool{plain: false, hooked(t): true} {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, has, bytes.Contains(data, []byte("TARRY_HOOK_")), path)
	}
}
