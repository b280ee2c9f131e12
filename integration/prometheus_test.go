package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
	"tarry/internal/freeport"
)

// prometheus is a real Prometheus with the rules of deploy.
type prometheus struct {
	t    *testing.T
	addr string
}

// startPrometheus scrapes nodes every second. Alerts fire after seconds instead of minutes;
// that is all that differs from the rules.
func startPrometheus(t *testing.T, binary string, nodes []*localcluster.Node) *prometheus {
	dir := t.TempDir()
	rules, err := os.ReadFile(filepath.Join(deployDir, "prometheus", "rules.yml"))
	require.NoError(t, err)
	rules = regexp.MustCompile(`(?m)^        for: .*$`).ReplaceAll(rules, []byte("        for: 5s"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rules.yml"), rules, 0o600))
	var targets []string
	for _, n := range nodes {
		targets = append(targets, strconv.Quote(n.HTTP))
	}
	config := fmt.Sprintf(`global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [rules.yml]
scrape_configs:
  - job_name: tarry
    static_configs:
      - targets: [%s]
`, strings.Join(targets, ", "))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600))
	port, err := freeport.Take()
	require.NoError(t, err)
	p := &prometheus{t: t, addr: fmt.Sprint("127.0.0.1:", port)}
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	cmd := exec.Command(binary, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+p.addr, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		log.Close()
		if t.Failed() {
			t.Logf("the log of Prometheus:\n%s", tail(log.Name()))
		}
	})
	return p
}

// sample is one result of an instant query.
type sample struct {
	Metric map[string]string
	Value  [2]any // when, and the number as text
}

func (p *prometheus) query(expr string) ([]sample, error) {
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get("http://" + p.addr + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result []sample }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("%s: %s", expr, answer.Error)
	}
	return answer.Data.Result, nil
}

// waitFor waits until a query has a number of results.
func (p *prometheus) waitFor(expr string, results int) []sample {
	p.t.Helper()
	var got []sample
	waitUntil(p.t, func() (err error) {
		if got, err = p.query(expr); err == nil && len(got) != results {
			err = fmt.Errorf("%s has %d results, want %d: %v", expr, len(got), results, got)
		}
		return err
	})
	return got
}

// A real Prometheus scrapes three nodes. One of them is killed: the alert for that node
// fires, and no other does that would wake somebody up for nothing.
func TestPrometheusNoticesThatANodeDies(t *testing.T) {
	t.Parallel()
	binary := tool(t, "prometheus")
	c := startCluster(t, 3)
	p := startPrometheus(t, binary, c.Nodes())
	p.waitFor(`up{job="tarry"} == 1`, 3)
	c.tarry("add", "--topic", "mail", "--id", "a", "hello")
	c.tarry("reserve", "--topic", "mail")
	p.waitFor(`sum(tarry_raft_is_leader) == 1`, 1)
	p.waitFor(`tarry_topic_jobs{topic="mail",state="reserved"} == 1`, 1)
	p.waitFor(`tarry_cluster_failure_tolerance == 1`, 1)
	p.everyQueryOfTheDashboardWorks()

	victim := c.follower()
	c.kill(victim)
	fired := p.waitFor(`ALERTS{alertname="TarryNodeDown",alertstate="firing"}`, 1)
	require.Equal(t, victim.HTTP, fired[0].Metric["instance"])
	require.Equal(t, "warning", fired[0].Metric["severity"])
	p.waitFor(`ALERTS{alertname="TarryNoFailureTolerance",alertstate="firing"}`, 1)
	critical, err := p.query(`ALERTS{severity="critical",alertstate="firing"}`)
	require.NoError(t, err)
	require.Empty(t, critical, "a majority serves clients")

	c.start(victim)
	p.waitFor(`ALERTS{alertname=~"TarryNodeDown|TarryNoFailureTolerance"}`, 0)

	for _, n := range c.Nodes() {
		if n != victim {
			c.kill(n)
		}
	}
	fired = p.waitFor(`ALERTS{alertname="TarryNoLeader",alertstate="firing"}`, 1)
	require.Equal(t, "critical", fired[0].Metric["severity"])
}

// everyQueryOfTheDashboardWorks makes the queries as Grafana would.
func (p *prometheus) everyQueryOfTheDashboardWorks() {
	p.t.Helper()
	variables := strings.NewReplacer("$job", "tarry", "$topic", ".*", "$instance", ".*", "$__rate_interval", "1m")
	for where, query := range queriesOf(p.t) {
		if !strings.HasPrefix(where, "dashboard") || strings.HasPrefix(query, "label_values") {
			continue
		}
		waitUntil(p.t, func() error {
			found, err := p.query(variables.Replace(query))
			if err == nil && len(found) == 0 {
				err = fmt.Errorf("%s has no result: %s", where, query)
			}
			return err
		})
	}
}
