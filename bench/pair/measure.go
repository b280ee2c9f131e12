package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// measure runs everything once.
func (s *side) measure(ctx context.Context, c config, found func(name string, v float64)) error {
	for _, benchmark := range list(c.fsm) {
		name, count, ok := strings.Cut(benchmark, ":")
		if !ok || !strings.HasSuffix(count, "x") {
			return fmt.Errorf("the benchmark %q does not say how often it runs, as in Cycle:300x", benchmark)
		}
		out, cpu, err := timed(ctx, filepath.Join(s.tree, "fsm"), "../fsm.bench",
			"-test.run", "xxx", "-test.bench", "^Benchmark"+name+"$", "-test.benchtime", count, "-test.timeout", "30m")
		if err != nil {
			return err
		}
		readBenchmarks(out, found)
		found(name+" CPU s", cpu.Seconds())
	}
	for _, scenario := range list(c.scenario) {
		out, err := output(ctx, s.tree, "./tarry.bench", append([]string{"bench", "--start", "3", "--json",
			"--scenario", scenario, "--duration", c.duration}, s.args...)...)
		if err != nil {
			return err
		}
		if err := readScenario(out, found); err != nil {
			return fmt.Errorf("scenario %s: %w", scenario, err)
		}
	}
	return nil
}

// readBenchmarks reads what go test prints: a name, a count, and pairs of a value
// and its unit.
func readBenchmarks(out string, found func(name string, v float64)) {
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 2 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(f[0], "Benchmark"), "-") // the processors
		for i := 2; i+1 < len(f); i += 2 {
			v, err := strconv.ParseFloat(f[i], 64)
			unit := f[i+1]
			if err == nil && (strings.HasPrefix(unit, "ns/job") || unit == "allocs/op") {
				found(name+" "+unit, v)
			}
		}
	}
}

// readScenario reads one result of tarry bench.
func readScenario(out string, found func(name string, v float64)) error {
	var r struct {
		Scenario string                     `json:"scenario"`
		Rate     float64                    `json:"jobs_per_second"`
		Failures int64                      `json:"failed_calls"`
		Nodes    float64                    `json:"node_cores"`
		Lateness struct{ P50, P99 float64 } `json:"lateness_ms"`
		Latency  struct{ P50, P99 float64 } `json:"latency_ms"`
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		return err
	}
	if r.Failures > 0 {
		return fmt.Errorf("%d calls failed", r.Failures)
	}
	if r.Lateness.P99 > 0 {
		found(r.Scenario+" lateness p50 ms", r.Lateness.P50)
		found(r.Scenario+" lateness p99 ms", r.Lateness.P99)
	} else {
		found(r.Scenario+" us a job", 1e6/r.Rate)
		found(r.Scenario+" latency p50 ms", r.Latency.P50)
	}
	found(r.Scenario+" node CPU us a job", 1e6*r.Nodes/r.Rate)
	return nil
}

func list(of string) []string {
	return strings.FieldsFunc(of, func(r rune) bool { return r == ',' })
}
