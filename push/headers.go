package push

import (
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"tarry/job"
	"tarry/job/jobpb"
)

// headerPrefix precedes the names of a job's own headers, so that they cannot be confused
// with others.
const headerPrefix = "Tarry-Header-"

// addTrace adds a job's trace context, so that the target's spans belong to the job's trace.
func addTrace(to http.Header, o *jobpb.JobOptions) {
	parent, state := job.TraceOf(o)
	if parent == "" {
		return
	}
	to.Set(job.HeaderTraceParent, parent)
	if state != "" {
		to.Set(job.HeaderTraceState, state)
	}
}

// addHeaders adds a job's own headers to those of a post. It omits those that HTTP cannot
// carry. Names that differ only in case are the same name in HTTP: it sends each value
// under that name.
func addHeaders(to http.Header, list []*jobpb.Header) {
	for _, h := range list {
		if httpguts.ValidHeaderFieldName(h.Name) && carried(h.Value) {
			to.Add(headerPrefix+h.Name, h.Value)
		}
	}
}

// carried reports whether a value arrives unchanged: it is printable ASCII, without
// leading and trailing blanks, which receivers trim.
func carried(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c > '~' {
			return false
		}
	}
	return strings.Trim(value, " \t") == value
}
