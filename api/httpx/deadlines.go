package httpx

import (
	"errors"
	"net/http"
	"strings"
	"time"
)

// The deadlines of a connection. A client that stops sending or reading in the middle
// must not hold memory indefinitely. They do not limit waiting for a job: the server clears
// the read deadline once it has read a request, to detect a client that hangs up, and the
// write deadline is set when the response is ready. Writers without deadlines, such as a
// test's recorder, return an error, which is ignored.

const (
	// ReadGrace is how long a client may pause before its connection is cut, in a
	// request that it has begun.
	ReadGrace = 5 * time.Second
	// SlowestRead is the lowest rate of a request, in bytes per second.
	SlowestRead = 16 << 10
	// CrowdedRead is how long all of a request may take on a connection that is one too many for
	// its token, or for its node.
	CrowdedRead = time.Second
	// maxDrain is how much of a request that nobody needs is read before its response. net/http
	// reads as much, without a deadline.
	maxDrain = 256 << 10
)

// ReadTime returns how long n bytes of a request may take to arrive. It does not limit
// clients that are idle between requests or wait for a job.
func ReadTime(n int64) time.Duration {
	return ReadGrace + time.Duration(n)*time.Second/SlowestRead
}

// AllowRead sets the read deadline to d after the start of the request.
func AllowRead(w http.ResponseWriter, start time.Time, d time.Duration) {
	_ = http.NewResponseController(w).SetReadDeadline(start.Add(d))
}

// AllowWrite sets the write deadline to d from now. The server clears it once the
// response is sent.
func AllowWrite(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d))
}

// Writing sets the write deadline for a handler of another package.
func Writing(h http.Handler, d time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		AllowWrite(w, d)
		h.ServeHTTP(w, r)
	})
}

// readDeadliner is the server's own ResponseWriter; allowRead allocates to find it below others.
type readDeadliner interface{ SetReadDeadline(time.Time) error }

// Bounded is the outermost handler. net/http reads the rest of a request before it sends the
// response, so each request that has a body has a deadline, also if no handler reads it; who reads
// it extends that. A connection of the operators' room serves nothing but their calls, and one: full
// responds to others. ambiguous responds to a request whose end is not certain.
func Bounded(full, ambiguous, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := countedOf(r)
		if of, ok := w.(readDeadliner); ok && r.ContentLength != 0 {
			_ = of.SetReadDeadline(time.Now().Add(ReadGrace))
		}
		if r.ContentLength < 0 && c != nil && c.wire != nil {
			both, known := c.wire.twoLengths(r)
			if both || !known { // nothing that follows is taken for a request
				w.Header().Set("Connection", "close")
			}
			if both {
				ambiguous.ServeHTTP(w, r)
				return
			}
		}
		if c != nil && c.spare {
			w.Header().Set("Connection", "close")
			if !ofOperators(r.URL.Path) {
				full.ServeHTTP(w, r)
				return
			}
			c.admit()
		}
		h.ServeHTTP(w, r)
	})
}

// ofOperators reports whether a call is about the node or the cluster rather than about jobs.
func ofOperators(path string) bool {
	return path == "/livez" || path == "/readyz" || path == "/metrics" || strings.HasPrefix(path, "/v1/cluster/")
}

// drainRequest reads what is left of a request, so that its client gets the response although it is
// still sending. It must go on at slowestRead.
func Drain(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 || r.ContentLength > maxDrain || r.Header.Get("Expect") != "" {
		return // net/http closes the connection
	}
	started, b := time.Now(), make([]byte, FirstRoom)
	for n := 0; n < maxDrain; {
		AllowRead(w, started, ReadTime(int64(n)))
		more, err := r.Body.Read(b)
		if err != nil {
			return
		}
		n += more
	}
}

func Flush(w http.ResponseWriter) error {
	err := http.NewResponseController(w).Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}
