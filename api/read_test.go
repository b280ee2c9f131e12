package api

import (
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
