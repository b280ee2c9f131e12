package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

func committed(t *testing.T) *results {
	r, err := readResults(filepath.Join(root, "docs", "benchmarks", "peers.json"))
	require.NoError(t, err)
	return r
}

// Otherwise: make bench-peers PEERS=-pages.
func TestThePageShowsTheResults(t *testing.T) {
	r := committed(t)
	page, err := os.ReadFile(filepath.Join(root, "docs", "benchmarks.md"))
	require.NoError(t, err)
	filled, err := fillPage(string(page), r.blocks())
	require.NoError(t, err)
	require.Equal(t, filled, string(page))
	plots, err := r.plots()
	require.NoError(t, err)
	for name, svg := range plots {
		file, err := os.ReadFile(filepath.Join(root, "docs", "images", name))
		require.NoError(t, err)
		require.Equal(t, string(svg), string(file), name)
		require.Contains(t, string(page), "](images/"+name+")")
	}
}

func TestEachSystemIsDrawnInItsOwnWay(t *testing.T) {
	o, err := parse(nil)
	require.NoError(t, err)
	colors, shapes := map[any]bool{}, map[any]bool{}
	for _, s := range o.systems() {
		l, ok := looks[s.key]
		require.True(t, ok, s.key)
		require.False(t, colors[l.color] || shapes[l.shape], s.key)
		colors[l.color], shapes[l.shape] = true, true
	}
}

func TestAPageWithoutAPlaceIsRefused(t *testing.T) {
	page := "a\n<!-- made by make bench-peers: x -->\nold\n<!-- end -->\nb"
	filled, err := fillPage(page, map[string]string{"x": "new"})
	require.NoError(t, err)
	require.Equal(t, "a\n<!-- made by make bench-peers: x -->\nnew\n<!-- end -->\nb", filled)
	_, err = fillPage(page, map[string]string{"x": "new", "y": "new"})
	require.ErrorContains(t, err, `no place for "y"`)
	_, err = fillPage(page, nil)
	require.ErrorContains(t, err, "1 places for 0 blocks")
}

func TestResultsSurviveTheirFile(t *testing.T) {
	r := &results{
		Machine: "m", Systems: []systemResult{{Key: "nats"}}, Skipped: map[string]string{"redis": "not installed"},
		Points: []point{{System: "nats", Workload: "put", Rate: 2.5, Latency: summary{P50: 1}}, {System: "nats", Error: "gone"}},
	}
	file := filepath.Join(t.TempDir(), "r.json")
	require.NoError(t, r.write(file))
	again, err := readResults(file)
	require.NoError(t, err)
	require.Equal(t, r, again)
	require.NoError(t, (&results{}).write(file))
	_, err = readResults(file)
	require.NoError(t, err)
}

func TestALaterRunReplacesWhatItMeasured(t *testing.T) {
	r := &results{Command: "a", Points: append(rates("nats", 1, 2), rates("redis", 3)...)}
	r.Points = append(r.Points, point{System: "nats", Workload: "cycle"})
	r.replace(&results{Command: "b", Revision: "abc", Date: "2026-11-23", Points: rates("nats", 9)})
	require.Equal(t, append(append(rates("redis", 3), point{System: "nats", Workload: "cycle"}), rates("nats", 9)...), r.Points)
	require.Equal(t, []string{"`b` at `abc`, 2026-11-23"}, r.Again)
}

// rates makes points of single puts with 64 connections.
func rates(system string, values ...float64) (points []point) {
	for i, v := range values {
		points = append(points, point{System: system, Workload: "put", Connections: manyConnections, Round: i, Rate: v, Jobs: 1})
	}
	return points
}

func TestFiguresAreMediansOfTheRounds(t *testing.T) {
	r := &results{Points: rates("nats", 300, 100, 250, 200)}
	r.Points = append(r.Points, point{System: "nats", Workload: "put", Connections: manyConnections, Error: "gone"}, point{System: "nats", Workload: "cycle", Rate: 9})
	s, ok := r.of("nats", at("put", manyConnections, 0), rate)
	require.True(t, ok)
	require.Equal(t, spread{225, 100, 300}, s)
	_, ok = r.of("redis", at("put", manyConnections, 0), rate)
	require.False(t, ok)
}

func TestWhatPeersDoBetterIsNamed(t *testing.T) {
	r := &results{Systems: []systemResult{{Key: "tarry-http"}, {Key: "tarry-beanstalkd"}, {Key: "nats"}, {Key: "redis", Name: "Redis"}, {Key: "beanstalkd"}}}
	for system, rate := range map[string]float64{"tarry-http": 900, "tarry-beanstalkd": 1000, "nats": 1040, "redis": 2000, "beanstalkd": 950} {
		r.Points = append(r.Points, rates(system, rate)...)
	}
	require.Equal(t, "| better than Tarry | Tarry | |\n|---|---|---|\n| put, connections: 64 | 1,000/s | Redis 2,000/s (2.0 times) |", r.faster())
	require.Equal(t, " (1.5 times)", times(1.5))
	require.Equal(t, " (over 100 times)", times(10_000))
	require.Empty(t, times(math.Inf(1)), "a latency of zero")
}
