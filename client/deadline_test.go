package client_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/client"
)

// waits serves reserves: it replies in turn, the last time with a job, and notes the waits that
// it was asked for.
type waits struct {
	mu    sync.Mutex
	asked []float64
	first func(w http.ResponseWriter) // the first reply; nil: a job
}

func (s *waits) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Wait float64 `json:"wait"`
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	s.mu.Lock()
	s.asked = append(s.asked, in.Wait)
	first := len(s.asked) == 1 && s.first != nil
	s.mu.Unlock()
	if first {
		s.first(w)
		return
	}
	_, _ = io.WriteString(w, `{"success":true,"jobs":[{"id":"a","token":"0-1-1"}]}`)
}

func TestAReserveWaitsNoLongerThanItsContext(t *testing.T) {
	s := &waits{}
	server := httptest.NewServer(s)
	defer server.Close()
	c := connect(t, server.URL)
	for limit, most := range map[time.Duration]float64{time.Hour: 60, 20 * time.Second: 19.5, time.Second: 0.75} {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		jobs, err := c.Reserve(ctx, client.ReserveOptions{Topics: []string{"t"}, Wait: time.Minute})
		cancel()
		require.NoError(t, err)
		require.Len(t, jobs, 1)
		asked := s.asked[len(s.asked)-1]
		require.LessOrEqual(t, asked, most, limit)
		require.Greater(t, asked, most/10, limit)
	}
}

func TestAFurtherAttemptAsksForTheRestOfTheWait(t *testing.T) {
	s := &waits{first: func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"success":false,"code":"not_applied","outcome":"not_applied","error":"it stops"}`)
	}}
	server := httptest.NewServer(s)
	defer server.Close()
	_, err := connect(t, server.URL).Reserve(t.Context(), client.ReserveOptions{Topics: []string{"t"}, Wait: time.Minute})
	require.NoError(t, err)
	require.Len(t, s.asked, 2)
	require.LessOrEqual(t, s.asked[1], s.asked[0]-0.04, "there was a pause of 50 ms")
}

func TestTheContextThatEndsACallIsNamed(t *testing.T) {
	const limit = 2 * time.Second // a busy machine sends a request in it, and its reply
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600") // the next attempt would be after the limit
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"success":false,"code":"overloaded","outcome":"not_applied","error":"too much"}`)
	}))
	t.Cleanup(refusing.Close)
	add := func(ctx context.Context, c *client.Client) error {
		_, err := c.Add(ctx, client.NewJob{ID: "a", Topic: "t", Body: client.Text("x")})
		return err
	}
	get := func(ctx context.Context, c *client.Client) error { _, err := c.Get(ctx, "a"); return err }
	release := func(ctx context.Context, c *client.Client) error {
		_, err := c.Release(ctx, client.Ref{ID: "a"}, client.ReleaseOptions{})
		return err
	}
	for _, one := range []struct {
		name, url string
		code      client.Code
		limit     time.Duration
		call      func(context.Context, *client.Client) error
	}{
		{"a write", silent.URL, client.CodeUnknown, limit, add},
		{"a write that is not repeated", silent.URL, client.CodeUnknown, limit, release},
		{"a read", silent.URL, client.CodeNotApplied, limit, get},
		{"between attempts", refusing.URL, client.CodeOverloaded, limit, add},
		{"before it is sent", silent.URL, client.CodeNotApplied, 0, add},
	} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), one.limit)
			err := one.call(ctx, connect(t, one.url))
			cancel()
			var e *client.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, []any{one.code, one.code == client.CodeUnknown}, []any{e.Code, e.Unknown}, "%v", err)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "context deadline exceeded")
		})
	}

	c, err := client.New([]string{silent.URL}, client.WithTimeout(20*time.Millisecond), client.WithPatience(0))
	require.NoError(t, err)
	defer c.Close()
	err = add(t.Context(), c)
	require.NotErrorIs(t, err, context.DeadlineExceeded, "it was the attempt's limit")
	require.ErrorContains(t, err, "limit of 20ms")
}
