package api

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

// A page takes as much of the node's room as it holds, no less and no more.
func TestPagesCountAsBytesInUse(t *testing.T) {
	r := newRig(t, func(o *Options) { o.MaxBufferedBytes = 4_000 })
	for _, topic := range []string{"a", "b", "c"} {
		r.ok("/v1/jobs", `{"topic":"`+topic+`","body":1}`)
	}
	r.putOK(`{"spec":"@daily","job":{"topic":"t","body":1}}`)
	for _, path := range []string{"/v1/schedules", "/v1/topics?max=2"} {
		w := r.do("GET", path, "")
		require.Equal(t, 200, w.Code, w.Body)
	}
	r.ok("/v1/jobs", `{"topic":"d","body":1}`)
	refused(t, r.do("GET", "/v1/topics", ""), 429, job.CodeOverloaded, "4000")
}

// A read that failed did nothing, whatever became of it.
func TestAFailedReadIsNotDone(t *testing.T) {
	r := newRig(t)
	for _, err := range []error{job.Unknown("the outcome is unknown: it may have been done"), context.DeadlineExceeded} {
		r.queue.FailNext(err)
		w := r.do("GET", "/v1/jobs/a", "")
		refused(t, w, 503, job.CodeNotApplied, "could not be read")
		require.NotContains(t, w.Body.String(), "done")
		require.Equal(t, "1", w.Header().Get("Retry-After"))
		r.queue.FailNext(err)
		require.Equal(t, 504, r.post("/v1/jobs", `{"topic":"t","body":1}`).Code)
	}
}
