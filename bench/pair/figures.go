package main

import (
	"fmt"
	"slices"
	"strings"
)

// figures are what both sides measured, by name. In all of them less is better.
type figures struct {
	names  []string // in the order of their first measurement
	values [2]map[string][]float64
}

func newFigures() *figures {
	return &figures{values: [2]map[string][]float64{{}, {}}}
}

func (f *figures) add(side int, name string, v float64) {
	if !slices.Contains(f.names, name) {
		f.names = append(f.names, name)
	}
	f.values[side][name] = append(f.values[side][name], v)
}

// table returns a table of medians. The spread is that of all rounds around their
// median, the larger of the two sides': a change within it says nothing.
func (f *figures) table(before, after string) string {
	out := new(strings.Builder)
	fmt.Fprintf(out, "| less is better | %s | %s | change | spread |\n|---|---|---|---|---|\n", before, after)
	for _, name := range f.names {
		a, b := f.values[0][name], f.values[1][name]
		if len(a) == 0 || len(b) == 0 {
			fmt.Fprintf(out, "| %s | only one of them measures it | | | |\n", name)
			continue
		}
		change := "–"
		if median(a) != 0 {
			change = fmt.Sprintf("%+.1f%%", 100*(median(b)/median(a)-1))
		}
		fmt.Fprintf(out, "| %s | %.5g | %.5g | %s | ±%.1f%% |\n", name, median(a), median(b), change, 100*max(spread(a), spread(b)))
	}
	return out.String()
}

func median(of []float64) float64 {
	s := slices.Sorted(slices.Values(of))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// spread is half the distance between the quartiles, as a share of the median.
func spread(of []float64) float64 {
	s := slices.Sorted(slices.Values(of))
	m := median(of)
	if m == 0 {
		return 0
	}
	n := len(s)
	return (s[(3*(n-1)+3)/4] - s[(n-1)/4]) / 2 / m
}
