package push

import (
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"tarry/job/jobpb"
)

// headerPrefix stands before the names of a job's own headers, so that they
// cannot pass for any other.
const headerPrefix = "Tarry-Header-"

// addHeaders adds a job's own headers to those of a post, as far as HTTP can carry
// them; the others are left out. Names that differ in case alone are one to HTTP:
// each value is sent under it.
func addHeaders(to http.Header, list []*jobpb.Header) {
	for _, h := range list {
		if httpguts.ValidHeaderFieldName(h.Name) && carried(h.Value) {
			to.Add(headerPrefix+h.Name, h.Value)
		}
	}
}

// carried says that a value arrives as it is: it is printable ASCII, and blanks,
// which receivers cut off, are neither first nor last.
func carried(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c > '~' {
			return false
		}
	}
	return strings.Trim(value, " \t") == value
}
