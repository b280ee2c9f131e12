package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"tarry/bench"
)

// results is the file that the page is made from.
type results struct {
	Machine  string            `json:"machine"`
	Date     string            `json:"date"`
	Revision string            `json:"revision"`
	Command  string            `json:"command"`
	Load     string            `json:"load_before"` // of the machine, the first three numbers of /proc/loadavg
	Systems  []systemResult    `json:"systems"`
	Settings settings          `json:"settings"`
	Again    []string          `json:"measured_again,omitempty"` // what later runs with -only replaced
	Points   []point           `json:"points"`
	Skipped  map[string]string `json:"skipped,omitempty"` // by system, with the reason
}

type systemResult struct {
	Key     string   `json:"key"`
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Durable string   `json:"durable"`
	Command []string `json:"command"`
}

// point is one measurement of one round.
type point struct {
	System      string  `json:"system"`
	Workload    string  `json:"workload"`
	Connections int     `json:"connections,omitempty"`
	DuePerSec   int     `json:"due_per_second,omitempty"`
	Round       int     `json:"round"`
	Jobs        int64   `json:"jobs"`
	Failures    int64   `json:"failed_calls"`
	Rate        float64 `json:"jobs_per_second,omitempty"`
	Latency     summary `json:"latency_ms,omitzero"` // of a call, a batch, or the three calls of a cycle
	Lateness    summary `json:"lateness_ms,omitzero"`
	ServerCPU   float64 `json:"server_cpu_us_per_job,omitempty"` // of all its processes
	ServerCores float64 `json:"server_cores,omitempty"`
	LoadCores   float64 `json:"generator_cores,omitempty"`
	RSS         int64   `json:"rss_bytes,omitempty"`  // of all its processes
	Disk        int64   `json:"disk_bytes,omitempty"` // of all its directories
	Error       string  `json:"error,omitempty"`
}

// summary is percentiles in milliseconds.
type summary struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
}

func summarize(h *bench.Histogram) summary {
	if h.Count() == 0 {
		return summary{}
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return summary{ms(h.Quantile(0.5)), ms(h.Quantile(0.9)), ms(h.Quantile(0.99)), ms(h.Quantile(0.999)), ms(h.Max())}
}

// write keeps a line for each point, so that a new run is readable as a difference.
func (r *results) write(file string) error {
	head := *r
	head.Points = nil
	data, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return err
	}
	var lines bytes.Buffer
	for i, p := range r.Points {
		line, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if i > 0 {
			lines.WriteByte(',')
		}
		lines.WriteString("\n    ")
		lines.Write(line)
	}
	empty := []byte(`"points": null`)
	if !bytes.Contains(data, empty) {
		return fmt.Errorf("the results' head has no place for the points")
	}
	data = bytes.Replace(data, empty, fmt.Appendf(nil, `"points": [%s`+"\n  ]", lines.Bytes()), 1)
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// replace takes the points of a later run of some systems and workloads in place of those
// that it measured too.
func (r *results) replace(later *results) {
	type key struct{ system, workload string }
	anew := map[key]bool{}
	for _, p := range later.Points {
		anew[key{p.System, p.Workload}] = true
	}
	r.Points = slices.DeleteFunc(r.Points, func(p point) bool { return anew[key{p.System, p.Workload}] })
	r.Points = append(r.Points, later.Points...)
	r.Again = append(r.Again, fmt.Sprintf("`%s` at `%s`, %s", later.Command, later.Revision, later.Date))
}

func readResults(file string) (*results, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &results{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// spread is the median of some rounds, with the least and the largest.
type spread struct{ median, low, high float64 }

// of summarizes what value finds in the points of one system that match.
func (r *results) of(system string, match func(point) bool, value func(point) float64) (spread, bool) {
	var all []float64
	for _, p := range r.Points {
		if p.System == system && p.Error == "" && match(p) {
			all = append(all, value(p))
		}
	}
	if len(all) == 0 {
		return spread{}, false
	}
	slices.Sort(all)
	middle := (all[(len(all)-1)/2] + all[len(all)/2]) / 2
	return spread{middle, all[0], all[len(all)-1]}, true
}
