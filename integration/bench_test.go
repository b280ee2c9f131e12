package integration

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// The generator gets in where nobody does without TLS and a token.
func TestASecureClusterIsMeasured(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"http", "beanstalkd"} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
		cmd := exec.CommandContext(ctx, binary, "bench", "--start", "3", "--secure", "--protocol", protocol, "--scenario", "cycle",
			"--connections", "4", "--warmup", "0s", "--duration", "500ms", "--json")
		cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
		out, err := cmd.Output()
		cancel()
		require.NoError(t, err, "%s", out)
		var result struct {
			Command string
			Jobs    int
		}
		require.NoError(t, json.Unmarshal(out, &result), "%s", out)
		require.Positive(t, result.Jobs)
		require.Contains(t, result.Command, " --secure ")
	}
}
