package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// The server accepts what deploy/kubernetes and deploy/package give it.
func TestTheServerAcceptsTheSettingsOfDeploy(t *testing.T) {
	var config struct{ Data map[string]string }
	var set struct {
		Spec struct {
			Template struct {
				Spec struct{ Containers []struct{ Args []string } }
			}
		}
	}
	for file, into := range map[string]any{"configmap": &config, "statefulset": &set} {
		data, err := os.ReadFile("../../../../deploy/kubernetes/" + file + ".yaml")
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(data, into))
	}
	file := filepath.Join(t.TempDir(), "tarry.yaml")
	require.NoError(t, os.WriteFile(file, []byte(config.Data["tarry.yaml"]), 0o600))
	var args []string
	for _, arg := range set.Spec.Template.Spec.Containers[0].Args[1:] {
		arg = strings.ReplaceAll(arg, "$(POD_NAME)", "tarry-0")
		args = append(args, strings.ReplaceAll(arg, "/etc/tarry/tarry.yaml", file))
	}
	c, err := parseServerConfig(args, noEnv)
	require.NoError(t, err)
	require.Equal(t, "tarry-0", c.NodeID)
	require.Equal(t, "tarry-0.tarry-nodes", c.AdvertiseHost)
	require.Equal(t, "/tls/node-tarry-0.crt", c.ClusterTLS.Cert)
	require.Len(t, c.Seeds(), 3)

	c, err = parseServerConfig([]string{"--config", "../../../../deploy/package/tarry.yaml"}, noEnv)
	require.NoError(t, err)
	require.Equal(t, "/var/lib/tarry", c.DataDir)
	require.Equal(t, 1, c.expect())
}
