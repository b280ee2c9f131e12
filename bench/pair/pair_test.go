package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBenchmarksAndScenariosAreRead(t *testing.T) {
	got := map[string]float64{}
	found := func(name string, v float64) { got[name] = v }
	readBenchmarks(`goos: linux
BenchmarkAdd/ownIDs=false/replies=true-2  	     120	 4471 ns/job	  1000 B/op	  3021 allocs/op
BenchmarkDrainTopic-2	       1	      9000 ns/job-tenth-1	      9100 ns/job-tenth-10
PASS
`, found)
	require.NoError(t, readScenario(`{"scenario":"add","jobs_per_second":10000,"failed_calls":0,"latency_ms":{"p50":4.5,"p99":9},"node_cores":1.5}`, found))
	require.NoError(t, readScenario(`{"scenario":"delayed","jobs_per_second":1000,"latency_ms":{"p50":4.5},"lateness_ms":{"p50":2,"p99":6},"node_cores":1}`, found))
	require.Equal(t, map[string]float64{
		"Add/ownIDs=false/replies=true ns/job": 4471, "Add/ownIDs=false/replies=true allocs/op": 3021,
		"DrainTopic ns/job-tenth-1": 9000, "DrainTopic ns/job-tenth-10": 9100,
		"add us a job": 100, "add latency p50 ms": 4.5, "add node CPU us a job": 150,
		"delayed lateness p50 ms": 2, "delayed lateness p99 ms": 6, "delayed node CPU us a job": 1000,
	}, got)
	require.Error(t, readScenario(`{"scenario":"add","jobs_per_second":1,"failed_calls":3}`, found))
}

func TestMediansStandSideBySide(t *testing.T) {
	f := newFigures()
	for _, v := range []float64{100, 300, 200} {
		f.add(0, "add", v)
		f.add(1, "add", v*1.1)
	}
	f.add(1, "new", 1)
	out := f.table("aaa", "bbb")
	require.Contains(t, out, "| add | 200 | 220 | +10.0% | ±50.0% |")
	require.Contains(t, out, "| new | only one of them measures it | | | |")
}
