package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"tarry/chaos/history"
)

// Verdicts, from best to worst.
const (
	noViolation = "no violation"
	undecided   = "undecided"
	violation   = "VIOLATION"
)

// report is what a run came to. Its JSON is for programs.
type report struct {
	Seed      uint64         `json:"seed"`
	Nodes     int            `json:"nodes"`
	Mutant    string         `json:"mutant,omitempty"`
	Seconds   float64        `json:"seconds"`
	Faults    map[string]int `json:"faults"`
	Figures   map[string]int `json:"figures,omitempty"`
	Skipped   int            `json:"skipped"` // faults that found no free node
	Lacking   []string       `json:"lacking,omitempty"`
	Failovers int            `json:"failovers"`
	From      string         `json:"recovered_from,omitempty"` // what served after the loss of the cluster
	How       string         `json:"recovery,omitempty"`       // what became of that under faults

	history.Report

	Open        []string `json:"open,omitempty"` // why nothing was decided
	Dir         string   `json:"dir,omitempty"`
	HistoryFile string   `json:"history_file,omitempty"`
	Again       string   `json:"again"` // the command that repeats the run
}

// Verdict is the worst that was found.
func (r *report) Verdict() string {
	switch {
	case len(r.Found) > 0:
		return violation
	case len(r.Open) > 0:
		return undecided
	default:
		return noViolation
	}
}

func (r *report) undecided(format string, args ...any) {
	r.Open = append(r.Open, fmt.Sprintf(format, args...))
}

func (r *report) found(violations []history.Violation) {
	for _, v := range violations {
		r.Violate(v.Invariant, v.ID, "%s", v.Message)
	}
}

// verify is I9: all nodes have one state.
func (r *report) verify(v *verification, err error) {
	switch {
	case err != nil:
		r.undecided("the nodes' states could not be compared: %v", err)
	case !v.Equal:
		r.Violate("I9", "", "the nodes' states differ at index %d: %+v", v.Index, v.Digests)
	}
}

// check judges the history.
func (r *report) check(ops []history.Op, o history.Options) {
	r.Report.Add(history.Check(ops, o))
	if r.OpenLives > 0 {
		r.undecided("the search for an order of the calls took too long for %d of %d jobs", r.OpenLives, r.Lives)
	}
}

func (r *report) total() int {
	n := 0
	for _, count := range r.Faults {
		n += count
	}
	return n
}

func (r *report) print(w io.Writer, asJSON bool) error {
	if asJSON {
		type plain report // without methods
		return json.NewEncoder(w).Encode(struct {
			*plain
			Verdict string `json:"verdict"`
		}{(*plain)(r), r.Verdict()})
	}
	_, err := io.WriteString(w, r.text())
	return err
}

func (r *report) text() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-22s "+format+"\n", append([]any{name}, args...)...)
	}
	line("seed", "%d", r.Seed)
	if r.Mutant != "" {
		line("mutant", "%s", r.Mutant)
	}
	line("nodes", "%d, under load for %.0f s", r.Nodes, r.Seconds)
	line("faults", "%d: %s", r.total(), tally(r.Faults))
	if r.Skipped > 0 {
		line("", "%d more found no free node", r.Skipped)
	}
	for _, l := range r.Lacking {
		line("", "SKIPPED %s", l)
	}
	if len(r.Figures) > 0 {
		line("seen by faults", "%s", tally(r.Figures))
	}
	line("failovers", "%d", r.Failovers)
	if r.From != "" {
		line("recovered from "+r.From, "%s", r.How)
	}
	line("operations", "%d (%s)", r.Ops, r.Kinds())
	line("jobs", "%d acknowledged, %d more came out though their add was never acknowledged", r.Jobs, r.Recovered)
	line("unknown outcomes", "%d", r.Unknowns())
	line("queue", "%d lost, %d unexpected, %d delivered more than once", r.Lost, r.Unexpected, r.Duplicated)
	line("orders", "found for the calls on %d of %d jobs", r.Lives-r.OpenLives-r.Found["life"], r.Lives)
	line("redeliveries", "%d", r.Redeliveries)
	line("posts", "%d to targets, %d of them refused or not answered", r.Posts, r.RefusedPosts)
	line("worst unavailability", "%v without an acknowledged write; %v after a heal", round(r.WorstWriteGap), round(r.WorstQuietGap))
	line("worst lateness", "%v from due to delivery; %v while a consumer waited, without a fault", round(r.WorstLateness), round(r.WorstWait))
	for _, o := range r.Open {
		line("UNDECIDED", "%s", o)
	}
	for _, v := range r.Violations {
		line("VIOLATION", "%v", v)
	}
	for _, call := range r.Calls {
		line(call.Kind.String(), "%s", describe(call))
	}
	line("verdict", "%s", r.Verdict())
	if r.Verdict() != noViolation {
		line("kept", "%s", r.Dir)
		line("history", "%s", r.HistoryFile)
	}
	line("again", "%s", r.Again)
	return b.String()
}

// describe writes a call as the history does, with the beginning of its body.
func describe(call history.Op) string {
	call.Body = fmt.Sprintf("%.40s", call.Body)
	text, err := json.Marshal(&call)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func tally(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
