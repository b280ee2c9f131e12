package repository

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// grafanaPanel is what Grafana needs of a panel of deploy/grafana/tarry.json.
type grafanaPanel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ H, W, X, Y int }
	Datasource               struct{ Type, UID string }
	Targets                  []struct {
		RefID, Expr string
		Datasource  struct{ Type, UID string }
	}
}

// Whoever imports the dashboard chooses the data source, so no panel may name one; and
// Grafana shows a panel badly, or not at all, that has another's id or place. The queries
// themselves are tried in integration, by a real Prometheus.
func TestTheGrafanaDashboardCanBeImported(t *testing.T) {
	text := read(t, "deploy/grafana/tarry.json")
	var d struct {
		ID            *int
		UID, Title    string
		SchemaVersion int
		Templating    struct {
			List []struct {
				Name, Type string
				Datasource struct{ UID string }
			}
		}
		Panels []grafanaPanel
	}
	require.NoError(t, json.Unmarshal([]byte(text), &d))
	require.Nil(t, d.ID, "the id belongs to one Grafana")
	require.Equal(t, "tarry", d.UID)
	require.Equal(t, 39, d.SchemaVersion, "that of Grafana 10.4; newer ones raise it at import")
	variables := map[string]bool{"__rate_interval": true}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
		if v.Type == "query" {
			require.Equal(t, "${datasource}", v.Datasource.UID, v.Name)
		}
	}
	require.Equal(t, "datasource", d.Templating.List[0].Type, "the others are queried from it")
	for _, m := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(text, -1) {
		require.True(t, variables[m[1]] || m[1] == "__all", "there is no variable %s", m[1])
	}

	ids, taken := map[int]string{}, map[[2]int]string{}
	for _, p := range d.Panels {
		require.NotEmpty(t, p.Title)
		require.NotContains(t, ids, p.ID, "%s has the id of %s", p.Title, ids[p.ID])
		ids[p.ID] = p.Title
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				require.Less(t, x, 24, "%s is wider than the page", p.Title)
				require.NotContains(t, taken, [2]int{x, y}, "%s is where %s is", p.Title, taken[[2]int{x, y}])
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		require.NotEmpty(t, p.Description, p.Title)
		require.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		refs := map[string]bool{}
		for _, q := range p.Targets {
			require.Equal(t, "${datasource}", q.Datasource.UID, p.Title)
			require.NotEmpty(t, q.Expr, p.Title)
			require.False(t, refs[q.RefID], "%s has two queries %s", p.Title, q.RefID)
			refs[q.RefID] = true
		}
	}
	require.Greater(t, len(ids), 40)
}
