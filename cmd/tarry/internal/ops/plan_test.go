package ops

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
)

func TestPlans(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		load     load
		estimate need // rounded down to whole MiB, MB/s and tenths of a core
		provide  need // GiB, GiB, MB/s
		warnings int
	}{
		{load{0, 0, 0, 3}, need{425, 2176, 0, 0, 0}, need{1, 10, 0, 2, 0}, 0},
		{load{1e6, 100, 200, 3}, need{425, 2484, 0, 0, 0}, need{1, 10, 10, 2, 1}, 0},
		{load{10e6, 1000, 200, 3}, need{425, 5256, 0, 0.3, 0}, need{1, 20, 10, 2, 2}, 0},
		{load{50e6, 2000, 1000, 3}, need{425, 55724, 6, 0.7, 4}, need{1, 120, 20, 2, 9}, 0},
		{load{50e6, 2000, 1000, 5}, need{425, 55724, 6, 1.2, 8}, need{1, 120, 20, 2, 18}, 1},
		{load{1e9, 10000, 100, 3}, need{2141, 214845, 5, 3.6, 3}, need{5, 430, 20, 4, 7}, 2},
		{load{1e6, 100, 200, 1}, need{425, 2484, 0, 0, 0}, need{1, 10, 10, 2, 0}, 2},
	} {
		t.Run(fmt.Sprint(c.load), func(t *testing.T) {
			p := planFor(c.load)
			e, m := p.Estimate, p.Provide
			floor := func(v float64) float64 { return float64(int64(v)) }
			require.Equal(t, c.estimate, need{floor(e.Memory / (1 << 20)), floor(e.Disk / (1 << 20)), floor(e.Writes / 1e6), floor(e.Cores*10) / 10, floor(e.Network / 1e6)})
			require.Equal(t, c.provide, need{m.Memory / gib, m.Disk / gib, m.Writes / 1e6, m.Cores, m.Network / 1e6})
			require.Len(t, p.Warnings, c.warnings, p.Warnings)
		})
	}
}

// More of anything never needs less of anything.
func TestAPlanGrowsWithItsLoad(t *testing.T) {
	base := planFor(load{20e6, 500, 300, 3}).Estimate
	for _, l := range []load{{40e6, 500, 300, 3}, {20e6, 900, 300, 3}, {20e6, 500, 900, 3}, {20e6, 500, 300, 5}} {
		e := planFor(l).Estimate
		require.GreaterOrEqual(t, e.Memory, base.Memory)
		require.GreaterOrEqual(t, e.Disk, base.Disk)
		require.GreaterOrEqual(t, e.Writes, base.Writes)
		require.GreaterOrEqual(t, e.Cores, base.Cores)
		require.GreaterOrEqual(t, e.Network, base.Network)
		require.NotEqual(t, base, e)
	}
}

func TestQuantities(t *testing.T) {
	for text, want := range map[string]float64{"0": 0, "1500": 1500, "2k": 2000, "50M": 50e6, "1.5G": 1.5e9, "4Ki": 4096, "1Mi": 1 << 20, "1Gi": 1 << 30, "1e3": 1000} {
		var q quantity
		require.NoError(t, q.Set(text), text)
		require.InDelta(t, want, float64(q), 0, text)
	}
	for _, text := range []string{"", "k", "-1", "many", "1T", "1 k", "NaN", "Inf", "1kk", "0x10", "1_000"} {
		require.Error(t, new(quantity).Set(text), text)
	}
}

func TestThePlanCommand(t *testing.T) {
	s := clitest.NewShellOf(t, opsRoot)
	text := s.OK("plan", "--jobs", "50M", "--rate", "2k", "--body", "1k")
	require.Contains(t, text, "3 nodes for 50000000 pending jobs with bodies of 1000 bytes, and 2000 a second")
	require.Regexp(t, `(?m)^memory +425\.0 MiB +1\.0 GiB$`, text)
	require.NotContains(t, text, "note: ")
	require.Contains(t, s.OK("plan", "--jobs", "200M"), "note: memory and disk are computed from a measurement with 100000000 pending jobs; nothing larger was measured")
	var p capacity
	require.NoError(t, json.Unmarshal([]byte(s.OK("plan", "--jobs", "50M", "--rate", "2k", "--body", "1k", "--json")), &p))
	require.Equal(t, planFor(load{50e6, 2000, 1000, 3}), p)
	for _, wrong := range [][]string{{"--nodes", "2"}, {"--jobs", "many"}, {"--body", "5Mi"}, {"--rate", "20M"}, {"more"}} {
		code, _, _ := s.Run(append([]string{"plan"}, wrong...)...)
		require.Equal(t, cli.ExitUsage, code, wrong)
	}
}

// The page has each figure that plans are computed from, and what the command prints for its example.
func TestTheCapacityPageHasTheFigures(t *testing.T) {
	data, err := os.ReadFile("../../../../docs/capacity.md")
	require.NoError(t, err)
	page := string(data)
	for _, m := range measurements {
		require.Contains(t, page, fmt.Sprintf("\n| %s | %s %s | %s |\n", m.Name, grouped(m.Value), m.Unit, m.Source))
	}
	s := clitest.NewShellOf(t, opsRoot)
	require.Contains(t, page, "```\n"+strings.TrimSpace(s.OK("plan", "--jobs", "50M", "--rate", "2k", "--body", "1k"))+"\n```")
}

// grouped writes a number with commas.
func grouped(v float64) string {
	text := decimal(v)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// opsRoot has the commands of operators.
func opsRoot() *cobra.Command {
	return cli.RootOf(ClusterCommand(), DoctorCommand(), DebugCommand(), NamespaceCommand(), TokenCommand(), AuthCommand(), KeyringCommand(), ReadyCommand(), StandbyCommand(), PlanCommand())
}
