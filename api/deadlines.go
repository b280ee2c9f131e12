package api

import (
	"net/http"
	"strings"
	"time"

	"tarry/job"
)

// The deadlines of a connection. A client that stops sending or reading in the middle
// must not hold memory indefinitely. They do not limit waiting for a job: the server clears
// the read deadline once it has read a request, to detect a client that hangs up, and the
// write deadline is set when the response is ready. Writers without deadlines, such as a
// test's recorder, return an error, which is ignored.

const (
	// readGrace is how long a client may pause before its connection is cut, in a
	// request that it has begun.
	readGrace = 5 * time.Second
	// slowestRead is the lowest rate of a request, in bytes per second.
	slowestRead = 16 << 10
	// crowdedRead is how long all of a request may take on a connection that is one too many for
	// its token, or for its node.
	crowdedRead = time.Second
	// maxDrain is how much of a request that nobody needs is read before its response. net/http
	// reads as much, without a deadline.
	maxDrain = 256 << 10
)

// ReadTime returns how long n bytes of a request may take to arrive. It does not limit
// clients that are idle between requests or wait for a job.
func ReadTime(n int64) time.Duration {
	return readGrace + time.Duration(n)*time.Second/slowestRead
}

// allowRead sets the read deadline to d after the start of the request.
func allowRead(w http.ResponseWriter, start time.Time, d time.Duration) {
	_ = http.NewResponseController(w).SetReadDeadline(start.Add(d))
}

// allowWrite sets the write deadline to d from now. The server clears it once the
// response is sent.
func allowWrite(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d))
}

// writing sets the write deadline for a handler of another package.
func (s *server) writing(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		allowWrite(w, s.Timeout)
		h.ServeHTTP(w, r)
	})
}

// readDeadliner is the server's own ResponseWriter; allowRead allocates to find it below others.
type readDeadliner interface{ SetReadDeadline(time.Time) error }

// bounded is the outermost handler. net/http reads the rest of a request before it sends the
// response, so each request that has a body has a deadline, also if no handler reads it; who reads
// it extends that. A connection of the operators' room serves nothing but their calls, and one.
func (s *server) bounded(h http.Handler) http.Handler {
	full := s.refusing(func(*call) error {
		return job.Errorf(job.CodeOverloaded, "this node has as many connections as it may")
	})
	ambiguous := s.refusing(func(*call) error {
		return job.Errorf(codeBadHTTP, "the request has both Transfer-Encoding and Content-Length, so its end is not certain; send one of them")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := countedOf(r)
		if of, ok := w.(readDeadliner); ok && r.ContentLength != 0 {
			_ = of.SetReadDeadline(time.Now().Add(readGrace))
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

// drain reads what is left of a request, so that its client gets the response although it is
// still sending. It must go on at slowestRead.
func (x *call) drain() {
	if x.in != nil || x.r.ContentLength == 0 || x.r.ContentLength > maxDrain || x.r.Header.Get("Expect") != "" {
		return // it was read, or net/http closes the connection
	}
	started, b := time.Now(), make([]byte, firstRoom)
	for n := 0; n < maxDrain; {
		allowRead(x.w, started, ReadTime(int64(n)))
		more, err := x.r.Body.Read(b)
		if err != nil {
			return
		}
		n += more
	}
}
