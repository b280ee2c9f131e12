package job

import (
	"strings"

	"tarry/job/jobpb"
)

// The headers of a job that have its trace context, by W3C Trace Context. They do not tell
// jobs apart: a client that repeats an add may send those of another span.
const (
	HeaderTraceParent = "traceparent"
	HeaderTraceState  = "tracestate"
)

// traceParentBytes is the length of a traceparent of version 00:
// 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
const traceParentBytes = 55

// maxTraceStateBytes is the length of a tracestate that systems must pass on.
const maxTraceStateBytes = 512

// IsTraceHeader reports whether a header of that name has a part of the trace context.
func IsTraceHeader(name string) bool {
	return name == HeaderTraceParent || name == HeaderTraceState
}

// ValidTraceParent reports whether v is a traceparent of version 00, or begins like one and is
// of a later version.
func ValidTraceParent(v string) bool {
	if len(v) < traceParentBytes || v[2] != '-' || v[35] != '-' || v[52] != '-' {
		return false
	}
	version, trace, span, flags := v[:2], v[3:35], v[36:52], v[53:55]
	switch {
	case !lowerHex(version) || version == "ff":
		return false
	case !lowerHex(trace) || strings.Trim(trace, "0") == "":
		return false
	case !lowerHex(span) || strings.Trim(span, "0") == "":
		return false
	case !lowerHex(flags):
		return false
	case len(v) == traceParentBytes:
		return true
	}
	return version != "00" && v[traceParentBytes] == '-' && printable(v)
}

// ValidTraceState reports whether v can be passed on as a tracestate.
func ValidTraceState(v string) bool {
	return v != "" && len(v) <= maxTraceStateBytes && printable(v)
}

func lowerHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// printable reports whether s has only the ASCII characters that an HTTP header can have.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// TraceOf returns the trace context among a job's headers; an empty parent: it has none.
func TraceOf(o *jobpb.JobOptions) (parent, state string) {
	for _, h := range o.GetHeaders() {
		switch h.Name {
		case HeaderTraceParent:
			parent = h.Value
		case HeaderTraceState:
			state = h.Value
		}
	}
	if !ValidTraceParent(parent) {
		return "", ""
	}
	if !ValidTraceState(state) {
		state = ""
	}
	return parent, state
}
