package integration

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommandsSpeakTLS(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	a := newAuthority(t)
	addr := newFront(t, c, a.server(false)).addrs()[0].(string)
	stats := func(authority string) (string, error) {
		cmd := exec.CommandContext(t.Context(), binary, "stats", "--addr", addr)
		cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+authority)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := stats(a.files["ca"].(string))
	require.NoError(t, err, out)
	require.Contains(t, out, "DELAYED")
	out, err = stats(a.files["other_ca"].(string))
	require.Error(t, err)
	require.Contains(t, out, "certificate")
	require.Contains(t, out, "--tls-ca")
}
