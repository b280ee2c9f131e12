package api

import (
	"net/http"
	"time"
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
	// its token.
	crowdedRead = time.Second
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
