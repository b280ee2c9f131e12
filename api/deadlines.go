package api

import (
	"net/http"
	"time"
)

// The deadlines of a connection. A client that stops sending or reading in the
// middle must not hold memory for ever. Waiting for a job is not limited here:
// the server lifts the read deadline once it has read a request, to watch for a
// client that hangs up, and the write deadline is set when the answer is ready.
// Writers that have no deadlines, such as a test's recorder, say so; there is
// nothing to do about it.

const (
	// readGrace is how long a client may pause before its connection is cut, in a
	// request that it has begun.
	readGrace = 5 * time.Second
	// slowestRead is the rate behind that, in bytes a second.
	slowestRead = 16 << 10
)

// ReadTime is how long n bytes of a request may take to arrive. Clients that are idle
// between requests, or wait for a job, have no such limit.
func ReadTime(n int64) time.Duration {
	return readGrace + time.Duration(n)*time.Second/slowestRead
}

// allowRead gives the client until d after the start to send its request.
func allowRead(w http.ResponseWriter, start time.Time, d time.Duration) {
	_ = http.NewResponseController(w).SetReadDeadline(start.Add(d))
}

// allowWrite gives the client until d from now to take its answer. The server
// lifts the limit once the answer is out.
func allowWrite(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d))
}

// writing sets the deadline for a handler that is not ours.
func (s *server) writing(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		allowWrite(w, s.Timeout)
		h.ServeHTTP(w, r)
	})
}
