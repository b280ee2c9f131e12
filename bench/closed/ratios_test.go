package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/bench"
)

func TestRatiosAreThoseOfTheSameTurn(t *testing.T) {
	all := arms(false)
	r := newRatios()
	for _, speed := range []float64{1000, 100, 10} { // the machine becomes slower and slower
		r.add("add", all, map[string]*bench.Result{
			"open":   {Rate: speed, NodeCPU: 1, GeneratorCPU: 0.1},
			"closed": {Rate: speed / 2, NodeCPU: 0.75, GeneratorCPU: 0.1},
		})
	}
	out := r.String()
	require.Contains(t, out, "medians of 3 turns")
	require.Contains(t, out, "| add, open | 10000.0 | 1.00 (1.00 to 1.00) | 10000.0 | 1.00 (1.00 to 1.00) | 1000.0 |\n")
	require.Contains(t, out, "| add, closed | 20000.0 | 2.00 (2.00 to 2.00) | 15000.0 | 1.50 (1.50 to 1.50) | 2000.0 |\n")
}

func TestQuantiles(t *testing.T) {
	require.Equal(t, 2.0, quantile([]float64{3, 1, 2}, 0.5))
	require.Equal(t, 2.5, quantile([]float64{4, 1, 2, 3}, 0.5))
	require.Equal(t, 1.5, quantile([]float64{1, 2, 3}, 0.25))
	require.Equal(t, 7.0, quantile([]float64{7}, 0.75))
}
