package api

import (
	"net/http"
	"strings"

	"tarry/api/wire"
	"tarry/job"
)

// trace is the trace context of a request, by W3C Trace Context. A job that the request adds
// gets it as two of its headers, so that it comes back with the job.
type trace struct{ parent, state string }

// Names in the form of http.Header.
const (
	headerTraceParent = "Traceparent"
	headerTraceState  = "Tracestate"
)

// traceOf returns the context of a request. One that is invalid counts as missing, as its
// standard asks for: it must not make an add fail.
func traceOf(r *http.Request) trace {
	parents := r.Header[headerTraceParent]
	if len(parents) != 1 || !job.ValidTraceParent(parents[0]) {
		return trace{}
	}
	t := trace{parent: parents[0]}
	if state := strings.Join(r.Header[headerTraceState], ","); job.ValidTraceState(state) {
		t.state = state
	}
	return t
}

// addTo adds the context to the headers of a job, unless they have one or are full.
func (t trace) addTo(h *wire.Headers) {
	if t.parent == "" || h.V[job.HeaderTraceParent] != "" {
		return
	}
	size := len(job.HeaderTraceParent) + len(t.parent) + len(job.HeaderTraceState) + len(t.state)
	for name, value := range h.V {
		size += len(name) + len(value)
	}
	if len(h.V)+2 > job.MaxHeaders || size > job.MaxHeaderBytes {
		return
	}
	if h.V == nil {
		h.V = make(map[string]string, 2)
	}
	h.Set = true
	h.V[job.HeaderTraceParent] = t.parent
	delete(h.V, job.HeaderTraceState)
	if t.state != "" {
		h.V[job.HeaderTraceState] = t.state
	}
}

// trace adds the context of the request to the jobs that it adds.
func (x *call) trace(jobs []wire.AddRequest) {
	t := traceOf(x.r)
	for i := range jobs {
		t.addTo(&jobs[i].Headers)
	}
}
