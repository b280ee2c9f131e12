package api

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// pausedTopic is a queue whose one topic is paused.
type pausedTopic struct {
	Queue
	until int64
}

func (q pausedTopic) Read(_ context.Context, r *jobpb.Read, _ bool) (*jobpb.ReadResult, error) {
	return &jobpb.ReadResult{Topic: &jobpb.Topic{Name: r.GetTopic(), Ready: 1, PausedUntilMs: q.until}}, nil
}

func TestTopicSaysHowLongItIsPaused(t *testing.T) {
	for until, want := range map[int64]any{0: nil, 1_700_000_000_250: "2023-11-14T22:13:20.250Z"} {
		r := newRig(t, func(o *Options) { o.Queue = pausedTopic{o.Queue, until} })
		w := r.do(http.MethodGet, "/v1/topics/t", "")
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, want, decoded(t, w)["paused_until"])
	}
}
