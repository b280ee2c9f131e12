package main

import (
	"fmt"
	"slices"
	"strings"

	"tarry/bench"
)

// ratios has what was measured, and for each turn the ratio to the open cluster.
type ratios struct {
	order []row
	of    map[row]*figures
}

type row struct{ scenario, arm string }

// figures are those of one row, a value for each turn.
type figures struct {
	time, nodes, generator []float64 // microseconds a job
	timeRatio, nodesRatio  []float64 // to the open cluster
}

func newRatios() *ratios { return &ratios{of: map[row]*figures{}} }

// add records a turn. The first arm is the open cluster.
func (r *ratios) add(scenario string, all []*arm, measured map[string]*bench.Result) {
	open := measured[all[0].name]
	for _, a := range all {
		key := row{scenario, a.name}
		f := r.of[key]
		if f == nil {
			f = new(figures)
			r.of[key] = f
			r.order = append(r.order, key)
		}
		m := measured[a.name]
		f.time = append(f.time, 1e6/m.Rate)
		f.nodes = append(f.nodes, perJob(m.NodeCPU, m))
		f.generator = append(f.generator, perJob(m.GeneratorCPU, m))
		f.timeRatio = append(f.timeRatio, open.Rate/m.Rate)
		f.nodesRatio = append(f.nodesRatio, perJob(m.NodeCPU, m)/perJob(open.NodeCPU, open))
	}
}

// perJob is the processor time of a job, in microseconds.
func perJob(cores float64, m *bench.Result) float64 { return cores * 1e6 / m.Rate }

func (r *ratios) String() string {
	out := new(strings.Builder)
	fmt.Fprintf(out, "medians of %d turns; of ratios to the open cluster of the same turn, the middle half in brackets\n\n", len(r.of[r.order[0]].time))
	fmt.Fprintln(out, "| | us a job | time, ratio | nodes' processor time, us a job | ratio | generator's, us a job |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|")
	for _, key := range r.order {
		f := r.of[key]
		fmt.Fprintf(out, "| %s, %s | %.1f | %s | %.1f | %s | %.1f |\n", key.scenario, key.arm,
			quantile(f.time, 0.5), middle(f.timeRatio), quantile(f.nodes, 0.5), middle(f.nodesRatio), quantile(f.generator, 0.5))
	}
	return out.String()
}

func middle(of []float64) string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", quantile(of, 0.5), quantile(of, 0.25), quantile(of, 0.75))
}

// quantile returns the value below which a part of the values is, between neighbours in proportion.
func quantile(of []float64, part float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	at := part * float64(len(sorted)-1)
	below := int(at)
	if below+1 == len(sorted) {
		return sorted[below]
	}
	return sorted[below] + (at-float64(below))*(sorted[below+1]-sorted[below])
}
