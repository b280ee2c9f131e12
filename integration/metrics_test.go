package integration

import (
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
)

// scrape returns a node's /metrics.
func (c *cluster) scrape(n *localcluster.Node) string {
	c.t.Helper()
	client := http.Client{Timeout: patience}
	resp, err := client.Get("http://" + n.HTTP + "/metrics")
	require.NoError(c.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	require.Equal(c.t, http.StatusOK, resp.StatusCode)
	return string(text)
}

// usedNode is a single node with some series of each kind.
func usedNode(t *testing.T) (*cluster, *localcluster.Node) {
	c := startCluster(t, 1)
	c.tarry("namespace", "create", "mail", "--topic-prefix", "mail", "--jobs", "100")
	c.tarry("add", "--topic", "mail", "--id", "a", "hello")
	c.tarry("reserve", "--topic", "mail")
	c.tarry("finish", "a")
	c.tarry("topics")
	return c, c.Nodes()[0]
}

// tool returns the path of a program of Prometheus. The test is skipped without it.
func tool(t *testing.T, name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("SKIPPED: this machine has no %s (apt-get install prometheus): %v", name, err)
	}
	return path
}

func TestPromtoolAcceptsTheMetrics(t *testing.T) {
	t.Parallel()
	promtool := tool(t, "promtool")
	c, n := usedNode(t)
	check := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	check.Stdin = strings.NewReader(c.scrape(n))
	out, err := check.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out))
}

// ofTheNode are the metrics that belong to a node or the cluster. All others belong to a
// Raft group, which the label shard names.
var ofTheNode = regexp.MustCompile(`^tarry_(http|beanstalk|disk|cluster|build|gossip|auth|audit|token|standby|backups?)_|^tarry_streams?(_credit)?$|^tarry_clock_offset_seconds$`)

func TestMetricsFollowTheConventions(t *testing.T) {
	t.Parallel()
	c, n := usedNode(t)
	text := c.scrape(n)
	types := regexp.MustCompile(`(?m)^# TYPE (tarry_\S+) (\S+)$`).FindAllStringSubmatch(text, -1)
	require.Greater(t, len(types), 30)
	for _, m := range types {
		name, kind := m[1], m[2]
		require.Equal(t, kind == "counter", strings.HasSuffix(name, "_total"), "%s is a %s", name, kind)
		require.Regexp(t, `(?m)^# HELP `+name+` \S.*\.$`, text)
		series := regexp.MustCompile(`(?m)^`+name+`(_bucket|_sum|_count)?(\{.*\})? `).FindAllString(text, -1)
		require.NotEmpty(t, series, name)
		for _, s := range series {
			require.Equal(t, !ofTheNode.MatchString(name), strings.Contains(s, `shard="0"`), s)
		}
	}
	require.Regexp(t, `(?m)^tarry_build_info\{goversion="go[^"]+",revision="[^"]+",version="development"\} 1$`, text)
	require.Contains(t, text, `tarry_http_requests_total{method="POST",path="/v1/jobs/{id}/finish",status="200"} 1`)
	require.Contains(t, text, `tarry_http_request_seconds_count{method="POST",path="/v1/jobs"} 1`)
	require.Contains(t, text, `tarry_topic_finishes_total{shard="0",topic="mail"} 1`)
	require.Contains(t, text, `tarry_topic_jobs{shard="0",state="ready",topic="mail"} 0`)
	require.NotRegexp(t, `path="[^"]*:`, text, "a path is a plain template")
}
