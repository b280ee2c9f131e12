package integration

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
)

// composeProject keeps the test's containers, volumes and network apart from a
// cluster that a developer runs by `make cluster`.
const composeProject = "tarry-integration"

// The host ports of the test's nodes, for the same reason.
var composePorts = []string{"17300", "17310", "17320"}

// containers is the cluster of docker-compose.yml.
type containers struct {
	t       *testing.T
	command []string // docker compose or docker-compose
}

func TestNothingIsLostInContainers(t *testing.T) {
	requireDocker(t)
	c := startContainers(t)
	l := startLoad(t, c.addrs())
	faults := []struct {
		name        string
		breaks, end []string // docker arguments; NODE is the victim
	}{
		{"kill", []string{"kill", "NODE"}, []string{"start", "NODE"}},
		{"pause", []string{"pause", "NODE"}, []string{"unpause", "NODE"}},
		{"disconnect", []string{"network", "disconnect", "NETWORK", "NODE"}, []string{"network", "connect", "--alias", "SERVICE", "NETWORK", "NODE"}},
	}
	rounds := 0
	for end := time.Now().Add(faultTime(t)); time.Now().Before(end) || rounds < len(faults); rounds++ {
		l.wait(3 * time.Second)
		victim, fault := c.findLeader(), faults[rounds%len(faults)]
		c.docker(victim, fault.breaks)
		l.wait(4 * time.Second)
		l.writes()
		c.docker(victim, fault.end)
		c.waitReady()
		t.Logf("%s of %s is over", fault.name, victim)
	}
	r := l.judge()
	t.Logf("operations %d, faults %d, unknown outcomes %d, redeliveries %d, worst write gap %v",
		r.Ops, rounds, r.Unknowns(), r.Redeliveries, r.WorstWriteGap)
	require.NotZero(t, r.Redeliveries)
	c.requireEqualDigests()
}

// requireDocker skips a test, loudly, where no Docker engine answers.
func requireDocker(t *testing.T) {
	if out, err := exec.Command("docker", "info").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "SKIPPED: no Docker engine, so %s did not run\n", t.Name())
		t.Skipf("SKIPPED: no Docker engine: %v: %.200s", err, out)
	}
}

// startContainers builds the image and starts three nodes with empty volumes.
func startContainers(t *testing.T) *containers {
	c := &containers{t: t, command: []string{"docker", "compose"}}
	if exec.Command("docker", "compose", "version").Run() != nil {
		c.command = []string{"docker-compose"}
	}
	buildImage(t)
	_, err := c.compose("down", "--volumes", "--timeout", "1") // what a killed run left
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := c.compose("logs", "--tail", "60")
			t.Logf("end of the containers' logs:\n%s", logs)
		}
		out, err := c.compose("down", "--volumes", "--timeout", "10")
		require.NoError(t, err, "%s", out)
	})
	out, err := c.compose("up", "-d")
	require.NoError(t, err, "%s", out)
	c.waitReady()
	return c
}

func buildImage(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "make", "-C", "..", "image", "IMAGE=tarry:integration").CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// compose runs docker compose on the project's own file. It is not bound to the
// test's context, which has ended when the clean-up runs.
func (c *containers) compose(args ...string) (string, error) {
	args = append(append(c.command[1:len(c.command):len(c.command)], "-p", composeProject, "-f", "../docker-compose.yml"), args...)
	cmd := exec.Command(c.command[0], args...)
	cmd.Env = append(os.Environ(), "TARRY_IMAGE=tarry:integration",
		"TARRY_PORT_1="+composePorts[0], "TARRY_PORT_2="+composePorts[1], "TARRY_PORT_3="+composePorts[2],
		"TARRY_BEANSTALK_PORT_1=17301", "TARRY_BEANSTALK_PORT_2=17311", "TARRY_BEANSTALK_PORT_3=17321")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// container is the engine's name of the container of a service.
func (c *containers) container(service string) string {
	c.t.Helper()
	out, err := exec.Command("docker", "ps", "-aq", "--filter", "label=com.docker.compose.project="+composeProject,
		"--filter", "label=com.docker.compose.service="+service).Output()
	require.NoError(c.t, err)
	return string(bytes.TrimSpace(out))
}

// docker runs one command with the names of the victim filled in.
func (c *containers) docker(service string, args []string) {
	c.t.Helper()
	names := strings.NewReplacer("NODE", c.container(service), "NETWORK", composeProject+"_default", "SERVICE", service)
	var filled []string
	for _, a := range args {
		filled = append(filled, names.Replace(a))
	}
	out, err := exec.Command("docker", filled...).CombinedOutput()
	require.NoError(c.t, err, "docker %v: %s", filled, out)
}

func (c *containers) addrs() []string {
	var addrs []string
	for _, port := range composePorts {
		addrs = append(addrs, "127.0.0.1:"+port)
	}
	return addrs
}

func (c *containers) waitReady() {
	c.t.Helper()
	for _, addr := range c.addrs() {
		waitUntil(c.t, func() error { return localcluster.Call(c.t.Context(), http.MethodGet, addr, "/readyz", nil) })
	}
}

// findLeader names the service that leads.
func (c *containers) findLeader() string {
	c.t.Helper()
	var leader string
	waitUntil(c.t, func() error {
		var answer struct {
			Members []struct{ ID, Role string }
		}
		if err := localcluster.Call(c.t.Context(), http.MethodGet, c.addrs()[0], "/v1/cluster/members", &answer); err != nil {
			return err
		}
		for _, m := range answer.Members {
			if m.Role == "leader" {
				leader = m.ID
				return nil
			}
		}
		return fmt.Errorf("no leader among %+v", answer.Members)
	})
	return leader
}

func (c *containers) requireEqualDigests() {
	c.t.Helper()
	var v verification
	waitUntil(c.t, func() error {
		v = verification{}
		if err := localcluster.Call(c.t.Context(), http.MethodPost, c.addrs()[0], "/v1/cluster/verify", &v); err != nil {
			return err
		}
		return v.complete()
	})
	require.True(c.t, v.Equal, "the nodes' states differ: %+v", v)
	require.Len(c.t, v.Digests, len(composePorts))
}
