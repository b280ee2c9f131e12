package repository

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// Each alert has a severity, a summary, a page that says what to do, and a test.
func TestEveryAlertSaysWhatToDo(t *testing.T) {
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "deploy/prometheus/rules.yml")), &rules))
	tests := read(t, "deploy/prometheus/rules_test.yml")
	var alerts []string
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			alerts = append(alerts, r.Alert)
			require.Regexp(t, "^Tarry[A-Z]", r.Alert)
			require.Contains(t, []string{"critical", "warning"}, r.Labels["severity"], r.Alert)
			require.NotEmpty(t, r.Annotations["summary"], r.Alert)
			url := r.Annotations["runbook_url"]
			require.NoError(t, deadLink("README.md", url), r.Alert)
			require.True(t, strings.HasSuffix(url, "#"+anchor(r.Alert)), "%s: %s", r.Alert, url)
			require.Contains(t, tests, "- alertname: "+r.Alert+"\n", "there is no test of it")
		}
	}
	require.Greater(t, len(alerts), 20)
	var explained []string
	for _, m := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllStringSubmatch(read(t, "docs/alerts.md"), -1) {
		explained = append(explained, m[1])
	}
	slices.Sort(alerts)
	slices.Sort(explained)
	require.Equal(t, alerts, explained, "docs/alerts.md explains exactly these")
}
