package repository

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// A test of integration starts this cluster where there is a Docker engine; this one holds
// everywhere that nothing in its file was turned off, and that all nodes have the same.
func TestTheSecureClusterHasAllProtectionOn(t *testing.T) {
	var file struct {
		Services map[string]struct {
			User        string
			ReadOnly    bool     `yaml:"read_only"`
			CapDrop     []string `yaml:"cap_drop"`
			SecurityOpt []string `yaml:"security_opt"`
			Environment map[string]string
			Command     []string
			Ports       []string
			Volumes     []string
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "deploy/secure/docker-compose.yml")), &file))
	require.Len(t, file.Services, 3)
	flags := serverFlags(t)
	for id, node := range file.Services {
		for name, value := range map[string]string{
			"TARRY_CLUSTER_TLS_MODE": "require", "TARRY_HTTP_TLS_MODE": "require", "TARRY_BEANSTALK_TLS_MODE": "require",
			"TARRY_GOSSIP_VERIFY": "full", "TARRY_GOSSIP_KEYS_FILE": "/keys/gossip.keys", "TARRY_AUDIT_LOG": "/audit/audit.log",
			"TARRY_HTTP_CLIENT_CA": "${TARRY_CLIENT_CA:-}", "TARRY_BEANSTALK_CLIENT_CA": "${TARRY_CLIENT_CA:-}",
		} {
			require.Equal(t, value, node.Environment[name], "%s of %s", name, id)
		}
		for name := range node.Environment {
			flag, ok := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(name), "_", "-"), "tarry-")
			require.True(t, ok && slices.Contains(flags, flag), "%s of %s is no setting of a node", name, id)
		}
		require.Equal(t, []string{"server", "--node-id", id, "--advertise-host", id}, node.Command, "what a command sets wins over the environment")
		require.Equal(t, "${TARRY_USER:?make cluster-secure sets it}", node.User)
		require.True(t, node.ReadOnly)
		require.Equal(t, []string{"ALL"}, node.CapDrop)
		require.Equal(t, []string{"no-new-privileges:true"}, node.SecurityOpt)
		require.Len(t, node.Ports, 2)
		for _, port := range node.Ports {
			require.True(t, strings.HasPrefix(port, "127.0.0.1:"), port)
		}
		for _, volume := range node.Volumes {
			require.True(t, strings.HasPrefix(volume, "${TARRY_SECURE_DIR:?}/"+id+"/"), "%s has %s: the key of the authority is for no node", id, volume)
		}
	}
	require.Contains(t, strings.Split(read(t, ".gitignore"), "\n"), "/tarry-secure*")
	out, err := exec.CommandContext(t.Context(), "sh", "-n", "deploy/secure/cluster.sh").CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// Before tokens are enforced everybody could make one, so until then only the operator's
// certificate opens the ports.
func TestTheSecureClusterIsClosedBeforeItsPortsAreOpen(t *testing.T) {
	script := read(t, "deploy/secure/cluster.sh")
	at := 0
	for _, step := range []string{
		"\nclose_cluster() (", "export TARRY_CLIENT_CA=/keys/ca.crt", "compose up -d", "auth bootstrap", "auth mode enforce",
		`mv "$dir/root.token.new" "$dir/root.token"`, "\n)\n", `[ -e "$dir/root.token" ] || close_cluster`, "\ncompose up -d",
	} {
		i := strings.Index(script[at:], step)
		require.GreaterOrEqual(t, i, 0, "%q does not follow its predecessors", step)
		at += i + len(step)
	}
}
