package bench

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Result is what one measurement found. Times are in milliseconds in its JSON.
type Result struct {
	Scenario     Scenario `json:"scenario"`
	Protocol     Protocol `json:"protocol,omitempty"`
	Command      string   `json:"command,omitempty"`
	Seconds      float64  `json:"seconds"`
	Jobs         int64    `json:"jobs"`
	Rate         float64  `json:"jobs_per_second,omitempty"`
	Failures     int64    `json:"failed_calls"`
	Latency      Summary  `json:"latency_ms"` // of a turn: a request, the three of a cycle or the two of work; of a failover
	Lateness     *Summary `json:"lateness_ms,omitempty"`
	Alone        *Summary `json:"alone_ms,omitempty"`  // Tenants: the latency of the quiet one without the loud one
	Ratio        float64  `json:"p99_ratio,omitempty"` // Tenants: of its p99 beside the loud one to that alone
	GeneratorCPU float64  `json:"generator_cores"`
	NodeCPU      float64  `json:"node_cores"`

	latencies Histogram // of Latency

	// Pending only.
	RSSBytes       int64   `json:"rss_bytes,omitempty"`
	DiskBytes      int64   `json:"disk_bytes,omitempty"`
	RestartSeconds float64 `json:"restart_seconds,omitempty"`      // start to ready, after SIGTERM
	KillSeconds    float64 `json:"restart_after_kill_s,omitempty"` // start to ready, after kill -9
	RSSRestarted   int64   `json:"rss_after_restart_bytes,omitempty"`
}

// Summary is the percentiles of one histogram.
type Summary struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
}

func summarize(h *Histogram) Summary {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return Summary{ms(h.Quantile(0.5)), ms(h.Quantile(0.9)), ms(h.Quantile(0.99)), ms(h.Quantile(0.999)), ms(h.Max())}
}

// Figure is the one number that the scenario is about, for a table.
func (r *Result) Figure() string {
	switch r.Scenario {
	case Cycle:
		return fmt.Sprintf("%s cycles/s", thousands(r.Rate))
	case Delayed, Worker:
		return fmt.Sprintf("lateness p50 %.1f ms, p99 %.1f ms at %s due/s", r.Lateness.P50, r.Lateness.P99, thousands(r.Rate))
	case Tenants:
		return fmt.Sprintf("p99 %.1f ms beside a tenant at ten times its share, %.1f ms alone: %.2f times", r.Latency.P99, r.Alone.P99, r.Ratio)
	case Failover, Handover:
		return fmt.Sprintf("p50 %.2f s, max %.2f s", r.Latency.P50/1000, r.Latency.Max/1000)
	case Pending:
		return fmt.Sprintf("%s jobs: RSS %s, restart %.1f s", thousands(float64(r.Jobs)), mebibytes(r.RSSBytes), r.RestartSeconds)
	default:
		return fmt.Sprintf("%s jobs/s", thousands(r.Rate))
	}
}

// Print writes the result for a person.
func (r *Result) Print(to io.Writer) error {
	w := new(strings.Builder)
	fmt.Fprintf(w, "%-10s %s\n", r.Scenario, r.Figure())
	line := func(name string, s Summary) {
		fmt.Fprintf(w, "  %-9s p50 %.2f ms, p90 %.2f ms, p99 %.2f ms, p99.9 %.2f ms, max %.2f ms\n", name, s.P50, s.P90, s.P99, s.P999, s.Max)
	}
	if r.Latency.Max > 0 {
		line("latency", r.Latency)
	}
	if r.Alone != nil {
		line("alone", *r.Alone)
	}
	if r.Lateness != nil {
		line("lateness", *r.Lateness)
	}
	if r.Scenario == Pending {
		fmt.Fprintf(w, "  memory    RSS %s with all jobs added, %s after a restart; %s on disk\n", mebibytes(r.RSSBytes), mebibytes(r.RSSRestarted), mebibytes(r.DiskBytes))
		fmt.Fprintf(w, "  restart   %.2f s after SIGTERM, %.2f s after kill -9\n", r.RestartSeconds, r.KillSeconds)
	}
	fmt.Fprintf(w, "  load      %d jobs in %.1f s, %d calls failed; cores used: generator %.2f, nodes %.2f\n", r.Jobs, r.Seconds, r.Failures, r.GeneratorCPU, r.NodeCPU)
	_, err := io.WriteString(to, w.String())
	return err
}

// TableHead and Row make a Markdown table of results.
const TableHead = "| what | reached | latency p50 / p99 / max | cores: nodes, generator | command |\n|---|---|---|---|---|\n"

// Row is the result as a line of the table that TableHead starts.
func (r *Result) Row(what string) string {
	latency := "–"
	if r.Latency.Max > 0 {
		latency = fmt.Sprintf("%.1f / %.1f / %.1f ms", r.Latency.P50, r.Latency.P99, r.Latency.Max)
	}
	return fmt.Sprintf("| %s | %s | %s | %.2f, %.2f | `%s` |\n", what, r.Figure(), latency, r.NodeCPU, r.GeneratorCPU, r.Command)
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// thousands writes a number with its groups of three set apart.
func thousands(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	return strings.Join(append([]string{digits}, groups...), ",")
}
