package integration

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/freeport"
)

// secureProject keeps the test's containers apart from those of `make cluster-secure`.
const secureProject = "tarry-secure-integration"

// secureCluster is that of deploy/secure, with keys and data in a directory of the test.
type secureCluster struct {
	t                *testing.T
	dir              string
	http, beanstalkd string   // addresses of the first node
	env              []string // of the script
	client           []string // environment of the commands, without a token
}

func newSecureCluster(t *testing.T) *secureCluster {
	s := &secureCluster{t: t, dir: filepath.Join(t.TempDir(), "secure")}
	compose := "docker compose"
	if exec.Command("docker", "compose", "version").Run() != nil {
		compose = "docker-compose"
	}
	s.env = append(os.Environ(), "TARRY="+binary, "TARRY_IMAGE=tarry:integration", "TARRY_SECURE_DIR="+s.dir,
		"COMPOSE="+compose, "COMPOSE_PROJECT_NAME="+secureProject)
	for i := 1; i <= 3; i++ {
		for _, name := range []string{"TARRY_PORT", "TARRY_BEANSTALK_PORT"} {
			port, err := freeport.Take()
			require.NoError(t, err)
			s.env = append(s.env, fmt.Sprintf("%s_%d=%d", name, i, port))
			switch addr := fmt.Sprintf("127.0.0.1:%d", port); {
			case i == 1 && name == "TARRY_PORT":
				s.http = addr
			case i == 1:
				s.beanstalkd = addr
			}
		}
	}
	_, err := s.script("down") // what a killed run left
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			for _, node := range []string{"n1", "n2", "n3"} {
				logs, _ := exec.Command("docker", "logs", "--tail", "40", secureProject+"-"+node).CombinedOutput()
				t.Logf("end of the log of %s:\n%s", node, logs)
			}
		}
		out, err := s.script("down")
		require.NoError(t, err, "%s", out)
	})
	return s
}

// script runs the script of make cluster-secure. It is not bound to the test's context, which
// has ended when the clean-up runs.
func (s *secureCluster) script(verb string) (string, error) {
	cmd := exec.Command("../deploy/secure/cluster.sh", verb)
	cmd.Env = s.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// start starts the nodes, takes the environment for the commands from the file that the script
// prints, and returns the commands that it prints.
func (s *secureCluster) start() (printed []string) {
	s.t.Helper()
	out, err := s.script("up")
	require.NoError(s.t, err, "%s", out)
	_, commands, found := strings.Cut(out, "To use them:\n\n")
	require.True(s.t, found, "%s", out)
	commands, _, found = strings.Cut(commands, "\n\n")
	require.True(s.t, found, "%s", out)
	for line := range strings.Lines(commands) {
		command, _, _ := strings.Cut(strings.TrimSpace(line), "   #")
		printed = append(printed, command)
	}
	require.Equal(s.t, ". '"+s.dir+"/env'", printed[0])
	require.NotContains(s.t, out, s.token(), "a token in a terminal or a log of CI")
	env, err := exec.CommandContext(s.t.Context(), "env", "-i", "sh", "-c", ". '"+s.dir+"/env'; env").Output()
	require.NoError(s.t, err)
	s.client = nil
	for line := range strings.Lines(string(env)) {
		if strings.HasPrefix(line, "TARRY_") && !strings.HasPrefix(line, "TARRY_TOKEN_FILE=") {
			s.client = append(s.client, strings.TrimSpace(line))
		}
	}
	require.Len(s.t, s.client, 2)
	return printed
}

// run runs commands of tarry that the script has printed, for an empty queue.
func (s *secureCluster) run(commands []string) {
	s.t.Helper()
	for i, command := range commands[1:] {
		require.True(s.t, strings.HasPrefix(command, binary+" "), command)
		command = strings.ReplaceAll(command, "TOKEN", "0-1-1") // the first reservation of the first job
		commands[i+1] = command + " --patience 60s"             // as long as an election on a busy machine takes
	}
	script := "set -e\n" + strings.Join(commands, "\n")
	out, err := exec.CommandContext(s.t.Context(), "env", "-i", "sh", "-c", script).CombinedOutput()
	require.NoError(s.t, err, "%s\n%s", script, out)
}

func (s *secureCluster) token() string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "root.token"))
	require.NoError(s.t, err)
	return strings.TrimSpace(string(text))
}

// tarry runs a command with the token of the file, or without one. It waits as long as an
// election on a busy machine takes.
func (s *secureCluster) tarry(tokenFile string, args ...string) (string, error) {
	cmd := exec.CommandContext(s.t.Context(), binary, append(args, "--patience", "60s")...)
	cmd.Env = s.client
	if tokenFile != "" {
		cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], "TARRY_TOKEN_FILE="+filepath.Join(s.dir, tokenFile))
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *secureCluster) root(args ...string) string {
	s.t.Helper()
	out, err := s.tarry("root.token", args...)
	require.NoError(s.t, err, "tarry %v: %s", args, out)
	return out
}

// beanstalk sends lines on one connection over TLS and returns the first line of each reply.
func (s *secureCluster) beanstalk(lines ...string) (replies []string) {
	s.t.Helper()
	ca, err := os.ReadFile(filepath.Join(s.dir, "ca.crt"))
	require.NoError(s.t, err)
	pool := x509.NewCertPool()
	require.True(s.t, pool.AppendCertsFromPEM(ca))
	conn, err := tls.Dial("tcp", s.beanstalkd, &tls.Config{RootCAs: pool})
	require.NoError(s.t, err)
	defer conn.Close()
	require.NoError(s.t, conn.SetDeadline(time.Now().Add(patience)))
	r := bufio.NewReader(conn)
	for _, line := range lines {
		_, err := fmt.Fprintf(conn, "%s\r\n", line)
		require.NoError(s.t, err)
		reply, err := r.ReadString('\n')
		require.NoError(s.t, err)
		replies = append(replies, strings.TrimSpace(reply))
	}
	return replies
}

func TestTheSecureClusterInContainers(t *testing.T) {
	requireDocker(t)
	buildImage(t)
	s := newSecureCluster(t)
	printed := s.start()

	// Nobody gets in without a token, or without TLS.
	out, err := s.tarry("", "stats")
	require.Error(t, err)
	require.Contains(t, out, "token")
	resp, err := http.Get("http://" + s.http + "/v1/topics")
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	plain, err := net.Dial("tcp", s.beanstalkd)
	require.NoError(t, err)
	defer plain.Close()
	require.NoError(t, plain.SetDeadline(time.Now().Add(patience)))
	_, err = plain.Write([]byte("list-tubes\r\n"))
	require.NoError(t, err)
	reply, err := bufio.NewReader(plain).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "BAD_FORMAT\r\n", reply)
	require.Equal(t, []string{"INTERNAL_ERROR", "UNAUTHORIZED"}, s.beanstalk("use mail", "auth nobody"))
	require.Equal(t, []string{"AUTHORIZED", "USING mail"}, s.beanstalk("auth "+s.token(), "use mail"))

	// What it prints works, and the token that this makes does what it allows, also while a node is down.
	last := len(printed) - 1
	require.Equal(t, fmt.Sprintf("docker kill %[1]s-n1; %[2]s cluster health; docker start %[1]s-n1", secureProject, binary), printed[last])
	s.run(printed[:last])
	out, err = s.tarry("shop.token", "add", "--topic", "mail", "--id", "m2", "hello bob")
	require.NoError(t, err, out)
	out, err = s.tarry("shop.token", "purge", "mail", "--state", "ready", "--all", "--yes")
	require.Error(t, err)
	require.Contains(t, out, "manage")
	docker(t, "kill", secureProject+"-n1")
	out, err = s.tarry("shop.token", "reserve", "--json", "--topic", "mail", "--wait", "60s")
	require.NoError(t, err, out)
	var job struct{ ID, Token string }
	require.NoError(t, json.Unmarshal([]byte(out), &job), out)
	require.Equal(t, "m2", job.ID)
	docker(t, "start", secureProject+"-n1")
	waitUntil(t, func() error {
		if out, err := s.tarry("root.token", "cluster", "health"); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	out, err = s.tarry("shop.token", "finish", "m2", "--token", job.Token)
	require.NoError(t, err, out)

	// It can be repeated, and has nothing but what was made here.
	token := s.token()
	s.root("add", "--topic", "mail", "--id", "m3", "hello carl")
	s.start()
	out, err = s.script("down")
	require.NoError(t, err, "%s", out)
	s.start()
	require.Equal(t, token, s.token())
	require.Contains(t, s.root("get", "m3"), "hello carl")
	require.Equal(t, 2, strings.Count(s.root("token", "list", "--json"), "\n"), "root and shop")
	s.requirePrivateFiles()
	audit, err := os.ReadFile(filepath.Join(s.dir, "n1", "audit", "audit.log"))
	require.NoError(t, err)
	require.Contains(t, string(audit), `"PUT /v1/auth"`)
	require.NotContains(t, string(audit), token)
}

// requirePrivateFiles holds that nobody but the owner reads a key, a token or data.
func (s *secureCluster) requirePrivateFiles() {
	s.t.Helper()
	keys := 0
	require.NoError(s.t, filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := d.Info(); err != nil || info.Mode()&0o077 == 0 {
			keys += strings.Count(d.Name(), ".key")
			return err
		}
		return fmt.Errorf("%s can be read by others", path)
	}))
	require.Equal(s.t, 11, keys, "of the authority and the operator, and three of each node")
}

func docker(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "docker", args...).CombinedOutput()
	require.NoError(t, err, "docker %v: %s", args, out)
}
