package ops

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/api"
	"tarry/api/apitest"
	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
	"tarry/cmd/tarry/internal/server"
)

// unpacked returns the files of a bundle.
func unpacked(t *testing.T, file string) map[string]string {
	packed, err := os.ReadFile(file)
	require.NoError(t, err)
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	files := map[string]string{}
	for r := tar.NewReader(plain); ; {
		head, err := r.Next()
		if err == io.EOF {
			return files
		}
		require.NoError(t, err)
		require.EqualValues(t, 0o600, head.Mode)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		files[head.Name] = string(text)
	}
}

func TestABundleHasTheStateOfTheNodesAndNoSecrets(t *testing.T) {
	const secret, body = "s3cr3t-of-a-setting", "b0dy-of-a-job"
	env := map[string]string{"TARRY_PUSH_ALLOW": secret + ".example", "TARRY_NODE_ID": "n1"}
	cfg, err := settingsHere("", "", func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	require.NoError(t, err)
	queue, operator := apitest.New(t), &apitest.Operator{}
	server := httptest.NewServer(api.New(api.Options{
		Queue: queue, Operator: operator, About: server.AboutNode(cfg),
		RecentLog: func() []string { return []string{"msg=leading node=n1", "msg=serving"} },
		Metrics:   http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, someMetrics) }),
	}))
	t.Cleanup(server.Close)
	pprof := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }))
	t.Cleanup(pprof.Close)
	t.Setenv(cli.AddrEnv, server.Listener.Addr().String())
	s := &clitest.Shell{T: t, Root: opsRoot, Queue: queue, Operator: operator}
	operator.HTTP = map[string]string{"n1": os.Getenv(cli.AddrEnv), "n2": clitest.FreeAddr(t)}
	node, err := client.New([]string{os.Getenv(cli.AddrEnv)})
	require.NoError(t, err)
	t.Cleanup(node.Close)
	_, err = node.Add(t.Context(), client.NewJob{Topic: "mail", ID: "secret-id", Headers: map[string]string{"x": secret}, Body: client.Text(body)})
	require.NoError(t, err)

	out := filepath.Join(t.TempDir(), "bundle.tar.gz")
	code, printed, errs := s.Run("debug", "bundle", "--out", out, "--pprof", pprof.Listener.Addr().String())
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, printed, "It has no secrets and no jobs")
	require.Contains(t, errs, "not in the bundle: n3: it is down")
	require.Contains(t, errs, "not in the bundle: n2: no node answered")
	info, err := os.Stat(out)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())

	files := unpacked(t, out)
	for name, has := range map[string]string{
		"binary.json": "wire_version", "members.json": `"n3"`, "health.json": "n3 is not alive", "clocks.json": "majority", "doctor.json": "tarry cluster clock",
		"nodes/n1/node.json": `"push-allow"`, "nodes/n1/events.json": "leader changed", "nodes/n1/log.txt": "msg=leading node=n1\nmsg=serving\n", "nodes/n1/readyz.json": `"ready":true`, "nodes/n1/metrics.txt": "tarry_disk_low 1",
		"errors.txt": "n3: it is down",
		"profiles/" + fileName(pprof.Listener.Addr().String()) + "/heap.pb.gz": "/debug/pprof/heap",
	} {
		require.Contains(t, files["tarry-debug/"+name], has, name)
	}
	for name, text := range files {
		for _, private := range []string{secret, body, "secret-id"} {
			require.NotContains(t, text, private, name)
		}
	}

	code, _, errs = s.Run("debug", "bundle", "--out", out)
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "exists")
	code, _, _ = s.Run("debug", "bundle")
	require.Equal(t, cli.ExitUsage, code)
}

// What was read before an interruption may be all that can be had of a broken cluster.
func TestAnInterruptedBundleKeepsWhatItHas(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	operator := &apitest.Operator{}
	server := httptest.NewServer(api.New(api.Options{
		Queue: apitest.New(t), Operator: operator, About: apitest.About(),
		RecentLog: func() []string { interrupt(); return []string{"msg=serving"} },
	}))
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	operator.HTTP = map[string]string{"n1": address, "n2": address}
	out := filepath.Join(t.TempDir(), "bundle.tar.gz")
	var printed, errs bytes.Buffer
	code := cli.RunTree(ctx, opsRoot(), []string{"debug", "bundle", "--addr", address, "--out", out}, strings.NewReader(""), &printed, &errs)
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs.String(), "interrupted; "+out+" has what had been read")
	files := unpacked(t, out)
	require.Contains(t, files["tarry-debug/nodes/n1/events.json"], "leader changed")
	require.Contains(t, files["tarry-debug/errors.txt"], "interrupted")
	require.NotContains(t, files["tarry-debug/errors.txt"], "n2: events")
}

func TestNamesOfNodesAreNoPaths(t *testing.T) {
	require.Equal(t, "_.._etc_passwd", fileName("../../etc/passwd"))
	require.Equal(t, "127.0.0.1_7300", fileName("127.0.0.1:7300"))
}
