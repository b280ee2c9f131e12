package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// blocks are the parts of the page that are made from the results, by name.
func (r *results) blocks() map[string]string {
	return map[string]string{
		"conditions": r.conditions(),
		"systems":    r.systemTable(),
		"faster":     r.faster(),
		"put":        r.putTable(),
		"put-64":     r.loadTable("put", "puts/s", manyConnections),
		"cycle":      r.loadTable("cycle", "cycles/s", manyConnections),
		"batch":      r.loadTable("batch", "jobs/s", batchConnections),
		"late":       r.lateTable(),
		"consumer":   r.consumerTable(),
		"pending":    r.pendingTable(),
	}
}

// tables are all blocks, for the terminal.
func (r *results) tables() string {
	var b strings.Builder
	all := r.blocks()
	for _, name := range []string{"conditions", "systems", "put", "put-64", "cycle", "batch", "late", "consumer", "pending", "faster"} {
		fmt.Fprintf(&b, "%s\n\n", all[name])
	}
	return b.String()
}

func (r *results) conditions() string {
	s := r.Settings
	text := fmt.Sprintf("%s, `%s`, Tarry at `%s`, on %s. Medians of %d rounds in shuffled order, %v a measurement (%v for lateness) after %v of warm-up. "+
		"Memory and disk: each system once. Load of the machine before it began (1, 5 and 15 minutes): %s.",
		r.Date, r.Command, r.Revision, r.Machine, s.Rounds, s.Duration, 2*s.Duration, s.Warmup, r.Load)
	for _, run := range r.Again {
		text += " Measured again: " + run + "."
	}
	for key, why := range r.Skipped {
		text += fmt.Sprintf(" SKIPPED: %s (%s).", key, why)
	}
	for _, p := range r.Points {
		if p.Error != "" {
			text += fmt.Sprintf(" Round %d of `%s` by %s failed and does not count: %s.", p.Round, p.Workload, p.System, strings.TrimSpace(p.Error))
		}
	}
	return text
}

// table is a Markdown table with a line for each system that row has figures for.
func (r *results) table(head string, row func(key string) (string, bool)) string {
	lines := []string{head, "|" + strings.Repeat("---|", strings.Count(head, "|")-1)}
	for _, s := range r.Systems {
		if text, ok := row(s.Key); ok {
			lines = append(lines, "| "+s.Name+" | "+text+" |")
		}
	}
	return strings.Join(lines, "\n")
}

func (r *results) systemTable() string {
	var what = map[string]systemResult{}
	for _, s := range r.Systems {
		what[s.Key] = s
	}
	return r.table("| system | version | when it replies, the job is | started as |", func(key string) (string, bool) {
		s := what[key]
		return s.Version + " | " + s.Durable + " | `" + strings.Join(s.Command, "`, `") + "`", true
	})
}

func at(workload string, connections, rate int) func(point) bool {
	return func(p point) bool {
		return p.Workload == workload && p.Connections == connections && p.DuePerSec == rate
	}
}

func rate(p point) float64    { return p.Rate }
func p50(p point) float64     { return p.Latency.P50 }
func p99(p point) float64     { return p.Latency.P99 }
func late50(p point) float64  { return p.Lateness.P50 }
func late99(p point) float64  { return p.Lateness.P99 }
func lateMax(p point) float64 { return p.Lateness.Max }
func cpu(p point) float64     { return p.ServerCPU }
func loadCPU(p point) float64 { return p.LoadCores }

func (r *results) median(key string, match func(point) bool, value func(point) float64) float64 {
	s, _ := r.of(key, match, value)
	return s.median
}

func (r *results) putTable() string {
	head := "| puts/s, by connections |"
	for _, n := range connectionCounts {
		head += fmt.Sprintf(" %d |", n)
	}
	return r.table(head, func(key string) (string, bool) {
		var cells []string
		some := false
		for _, n := range connectionCounts {
			s, ok := r.of(key, at("put", n, 0), rate)
			some = some || ok
			cells = append(cells, thousands(s.median))
		}
		return strings.Join(cells, " | "), some
	})
}

func (r *results) loadTable(workload, unit string, connections int) string {
	m := at(workload, connections, 0)
	head := fmt.Sprintf("| | %s | lowest – highest round | latency p50 / p99 | servers' processor time, each | cores: servers, generator |", unit)
	return r.table(head, func(key string) (string, bool) {
		s, ok := r.of(key, m, rate)
		cores := func(p point) float64 { return p.ServerCores }
		return fmt.Sprintf("%s | %s – %s | %s / %s ms | %s µs | %.2f, %.2f", thousands(s.median), thousands(s.low), thousands(s.high),
			ms(r.median(key, m, p50)), ms(r.median(key, m, p99)), thousands(r.median(key, m, cpu)), r.median(key, m, cores), r.median(key, m, loadCPU)), ok
	})
}

func (r *results) lateTable() string {
	low, high := at("late", consumers, lowRate), at("late", consumers, highRate)
	head := fmt.Sprintf("| lateness | %d due/s: p50 / p99 / max | %s due/s: p50 / p99 / max | p50 of the rounds at %[2]s | jobs/s handed out at %[2]s | servers' processor time, a job at %[2]s |", lowRate, thousands(highRate))
	return r.table(head, func(key string) (string, bool) {
		s, ok := r.of(key, high, late50)
		three := func(m func(point) bool) string {
			latest, _ := r.of(key, m, lateMax)
			return ms(r.median(key, m, late50)) + " / " + ms(r.median(key, m, late99)) + " / " + ms(latest.high) + " ms"
		}
		return fmt.Sprintf("%s | %s | %s – %s ms | %s | %s µs", three(low), three(high), ms(s.low), ms(s.high), thousands(r.median(key, high, rate)), thousands(r.median(key, high, cpu))), ok
	})
}

func (r *results) consumerTable() string {
	m := at("one-consumer", 1, highRate)
	return r.table("| | jobs/s of one consumer | lowest – highest round | lateness p50 / p99 |", func(key string) (string, bool) {
		s, ok := r.of(key, m, rate)
		return fmt.Sprintf("%s | %s – %s | %s / %s ms", thousands(s.median), thousands(s.low), thousands(s.high), ms(r.median(key, m, late50)), ms(r.median(key, m, late99))), ok
	})
}

// pendingCounts are how many jobs every system was filled with, ascending.
func (r *results) pendingCounts() []int64 {
	var counts []int64
	for _, p := range r.Points {
		if p.Workload == "pending" && p.Error == "" && len(r.Systems) > 0 && p.System == r.Systems[0].Key {
			counts = append(counts, p.Jobs)
		}
	}
	return counts
}

func pending(jobs int64) func(point) bool {
	return func(p point) bool { return p.Workload == "pending" && p.Jobs == jobs }
}

func rss(p point) float64  { return float64(p.RSS) }
func disk(p point) float64 { return float64(p.Disk) }

func (r *results) pendingTable() string {
	counts := r.pendingCounts()
	if len(counts) < 2 {
		return "(not measured)"
	}
	most := float64(counts[len(counts)-1])
	const mib = 1 << 20
	head := "| all processes together | memory without jobs |"
	for _, n := range counts[1:] {
		head += fmt.Sprintf(" %s pending |", thousands(float64(n)))
	}
	head += fmt.Sprintf(" more, a job | disk without jobs | %s pending | more, a job |", thousands(most))
	return r.table(head, func(key string) (string, bool) {
		none, ok := r.of(key, pending(counts[0]), rss)
		cells := thousands(none.median / mib)
		var full spread
		for _, n := range counts[1:] {
			full, ok = r.of(key, pending(n), rss)
			cells += " | " + thousands(full.median/mib)
		}
		empty, used := r.median(key, pending(counts[0]), disk), r.median(key, pending(int64(most)), disk)
		return fmt.Sprintf("%s | %s bytes | %s | %s | %s bytes", cells, thousands((full.median-none.median)/most),
			thousands(empty/mib), thousands(used/mib), thousands((used-empty)/most)), ok
	})
}

// contest is a figure by which systems are compared.
type contest struct {
	what   string
	match  func(point) bool
	value  func(point) float64
	better func(peer, ours float64) float64 // how many times better the peer is
	unit   func(v float64) string
}

func (r *results) contests() []contest {
	more := func(peer, ours float64) float64 { return peer / ours }
	less := func(peer, ours float64) float64 { return ours / peer }
	perSecond := func(v float64) string { return thousands(v) + "/s" }
	millis := func(v float64) string { return ms(v) + " ms" }
	micros := func(v float64) string { return thousands(v) + " µs" }
	var list []contest
	latency := func(what string, match func(point) bool) {
		list = append(list, contest{what + ", latency p50", match, p50, less, millis}, contest{what + ", latency p99", match, p99, less, millis})
	}
	for _, n := range connectionCounts {
		list = append(list, contest{fmt.Sprintf("put, connections: %d", n), at("put", n, 0), rate, more, perSecond})
	}
	one, cycles, batches := at("put", manyConnections, 0), at("cycle", manyConnections, 0), at("batch", batchConnections, 0)
	latency(fmt.Sprintf("put, connections: %d", manyConnections), one)
	list = append(list, contest{"put, processor time", one, cpu, less, micros},
		contest{"put, reserve, delete", cycles, rate, more, perSecond})
	latency("put, reserve, delete", cycles)
	list = append(list, contest{"put, reserve, delete, processor time", cycles, cpu, less, micros},
		contest{"batches", batches, rate, more, perSecond})
	latency("batches", batches)
	list = append(list, contest{"batches, processor time a job", batches, cpu, less, micros})
	for _, n := range []int{lowRate, highRate} {
		late, due := at("late", consumers, n), thousands(float64(n))+" due/s"
		list = append(list, contest{"lateness at " + due + ", p50", late, late50, less, millis},
			contest{"lateness at " + due + ", p99", late, late99, less, millis},
			contest{"processor time a job at " + due, late, cpu, less, micros})
	}
	alone, high := at("one-consumer", 1, highRate), thousands(highRate)
	list = append(list, contest{"one consumer at " + high + " due/s", alone, rate, more, perSecond},
		contest{"one consumer at " + high + " due/s, lateness p50", alone, late50, less, millis},
		contest{"one consumer at " + high + " due/s, lateness p99", alone, late99, less, millis})
	mib := func(v float64) string { return thousands(v/(1<<20)) + " MiB" }
	for _, n := range r.pendingCounts() {
		list = append(list, contest{"memory with " + thousands(float64(n)) + " pending jobs", pending(n), rss, less, mib})
	}
	if counts := r.pendingCounts(); len(counts) > 1 {
		n := counts[len(counts)-1]
		list = append(list, contest{"disk with " + thousands(float64(n)) + " pending jobs", pending(n), disk, less, mib})
	}
	return list
}

// faster lists what peers do better than Tarry's better protocol, by more than a twentieth.
func (r *results) faster() string {
	lines := []string{"| better than Tarry | Tarry | |", "|---|---|---|"}
	for _, c := range r.contests() {
		var ours float64
		for _, s := range r.Systems {
			if v, ok := r.of(s.Key, c.match, c.value); ok && isTarry(s.Key) && (ours == 0 || c.better(v.median, ours) > 1) {
				ours = v.median
			}
		}
		var who []string
		for _, s := range r.Systems {
			v, ok := r.of(s.Key, c.match, c.value)
			if ok && !isTarry(s.Key) && ours > 0 && c.better(v.median, ours) > 1.05 {
				who = append(who, s.Name+" "+c.unit(v.median)+times(c.better(v.median, ours)))
			}
		}
		if len(who) > 0 {
			lines = append(lines, "| "+c.what+" | "+c.unit(ours)+" | "+strings.Join(who, "; ")+" |")
		}
	}
	return strings.Join(lines, "\n")
}

// times writes how many times better a peer is; nothing if its figure is too small to tell.
func times(better float64) string {
	if math.IsInf(better, 0) {
		return ""
	}
	if better > 100 {
		return " (over 100 times)" // a queue that grows: the factor depends on how long it was measured
	}
	return fmt.Sprintf(" (%.1f times)", better)
}

func isTarry(key string) bool { return strings.HasPrefix(key, "tarry") }

// ms has as many digits as mean something.
func ms(v float64) string {
	switch {
	case v < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return thousands(v)
}

// thousands sets groups of three digits apart.
func thousands(v float64) string {
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
