package integration

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the table of docs/monitoring.md anew")

const deployDir = "../deploy"

// typesOf returns the types of a node's metrics.
func typesOf(text string) map[string]string {
	types := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`).FindAllStringSubmatch(text, -1) {
		types[m[1]] = m[2]
	}
	return types
}

// The table has all metrics of a node.
func TestMonitoringPageListsTheMetrics(t *testing.T) {
	t.Parallel()
	c, n := usedNode(t)
	text := c.scrape(n)
	types := typesOf(text)
	var table strings.Builder
	table.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	rows := 0
	for _, m := range regexp.MustCompile(`(?m)^# HELP (tarry_\S+) (.+)\.$`).FindAllStringSubmatch(text, -1) {
		series := regexp.MustCompile(`(?m)^` + m[1] + `(?:_bucket|_sum|_count)?\{(.*)\} `).FindStringSubmatch(text)
		var labels []string
		if series != nil {
			for _, l := range regexp.MustCompile(`([a-z]+)="`).FindAllStringSubmatch(series[1], -1) {
				if l[1] != "le" {
					labels = append(labels, l[1])
				}
			}
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", m[1], types[m[1]], strings.Join(labels, ", "), m[2])
		rows++
	}
	require.Greater(t, rows, 50)
	page := filepath.Join("..", "docs", "monitoring.md")
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(data), "<!-- metrics -->\n")
	require.True(t, found)
	old, after, found := strings.Cut(rest, "<!-- end -->\n")
	require.True(t, found)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+"<!-- metrics -->\n"+table.String()+"<!-- end -->\n"+after), 0o644))
		return
	}
	require.Equal(t, table.String(), old, "go test ./integration -run TestMonitoringPage -update writes it")
}

// queriesOf returns the queries of the dashboard and of the alerts, by where they are.
func queriesOf(t *testing.T) map[string]string {
	queries := map[string]string{}
	data, err := os.ReadFile(filepath.Join(deployDir, "grafana", "tarry.json"))
	require.NoError(t, err)
	var dashboard any
	require.NoError(t, json.Unmarshal(data, &dashboard))
	var walk func(where string, v any)
	walk = func(where string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if title, ok := v["title"].(string); ok {
				where += "/" + title
			}
			for key, of := range v {
				if text, ok := of.(string); ok && (key == "expr" || key == "definition") {
					queries[fmt.Sprint(where, "/", v["refId"], v["name"])] = text
					continue
				}
				walk(where, of)
			}
		case []any:
			for _, of := range v {
				walk(where, of)
			}
		}
	}
	walk("dashboard", dashboard)
	require.Greater(t, len(queries), 50)
	data, err = os.ReadFile(filepath.Join(deployDir, "prometheus", "rules.yml"))
	require.NoError(t, err)
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	require.NoError(t, yaml.Unmarshal(data, &rules))
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			queries["rules/"+r.Alert] = r.Expr
		}
	}
	return queries
}

// Prometheus makes these itself.
var ofPrometheus = []string{"up", "ALERTS"}

// Only nodes with TLS have these: TestClientsSpeakTLSWithANode and
// TestAnAuthorityIsReplacedUnderLoad read them.
var ofTLS = []string{"tarry_certificate_expiry_seconds", "tarry_tls_reload_failures_total"}

func TestQueriesNameMetricsThatANodeHas(t *testing.T) {
	t.Parallel()
	c, n := usedNode(t)
	types := typesOf(c.scrape(n))
	words := regexp.MustCompile(`"[^"]*"|[a-zA-Z_:][a-zA-Z0-9_:]*`)
	named := map[string]bool{}
	for where, query := range queriesOf(t) {
		count := 0
		for _, word := range words.FindAllString(query, -1) {
			if slices.Contains(ofPrometheus, word) || slices.Contains(ofTLS, word) {
				count++
			}
			if slices.Contains(ofTLS, word) || !regexp.MustCompile(`^(tarry|go|process)_`).MatchString(word) {
				continue
			}
			name := word
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				if whole, ok := strings.CutSuffix(word, part); ok && types[whole] == "histogram" {
					name = whole
				}
			}
			require.Contains(t, types, name, "%s: %s", where, query)
			named[name] = true
			count++
		}
		require.NotZero(t, count, "%s names no metric: %s", where, query)
	}
	require.Greater(t, len(named), 40)
}

func TestPromtoolAcceptsTheRules(t *testing.T) {
	t.Parallel()
	promtool := tool(t, "promtool")
	for _, args := range [][]string{
		{"check", "config", "prometheus.yml"}, {"check", "rules", "rules.yml"}, {"test", "rules", "rules_test.yml"},
	} {
		check := exec.CommandContext(t.Context(), promtool, args...)
		check.Dir = filepath.Join(deployDir, "prometheus")
		out, err := check.CombinedOutput()
		require.NoError(t, err, "promtool %v: %s", args, out)
	}
}
