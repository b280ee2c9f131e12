package clienttest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api"
	"tarry/api/apitest"
	"tarry/client"
)

func TestAStreamGivesEveryJobAndEndsWithTheLoop(t *testing.T) {
	q := apitest.New(t)
	c := connect(t, node(t, q, &apitest.Operator{}))
	want := []string{"a", "b", "c", "d", "e"}
	for _, id := range want {
		mustAdd(t, c, client.NewJob{ID: id, Topic: "t", Body: client.Text("body of " + id), Headers: map[string]string{"n": id}})
	}
	var got []string
	for j, err := range c.Stream(t.Context(), client.StreamOptions{Topics: []string{"t"}, Credit: 2, TTR: time.Hour}) {
		require.NoError(t, err)
		require.Equal(t, []string{"body of " + j.ID, j.ID}, []string{string(j.Bytes()), j.Headers["n"]})
		require.Equal(t, time.Hour, j.TTR.Duration)
		got = append(got, j.ID)
		if len(got) == len(want) {
			break
		}
		require.NoError(t, c.Finish(t.Context(), j.Ref()))
	}
	require.Equal(t, want, got)
	require.Eventually(t, func() bool { return q.Watching() == 0 }, time.Minute, time.Millisecond)
}

func TestAStreamEndsWithItsContext(t *testing.T) {
	q := apitest.New(t)
	c := connect(t, node(t, q, &apitest.Operator{}))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		given := 0
		for range c.Stream(ctx, client.StreamOptions{Topics: []string{"t"}}) {
			given++
		}
		ended <- given
	}()
	require.Eventually(t, func() bool { return q.Waiting() == 1 }, time.Minute, time.Millisecond)
	cancel()
	require.Zero(t, <-ended, "neither a job nor an error")
	require.Eventually(t, func() bool { return q.Waiting() == 0 }, time.Minute, time.Millisecond)
}

func TestAStreamGoesOnWithAnotherNode(t *testing.T) {
	q := apitest.New(t)
	var draining atomic.Bool
	drained := make(chan struct{})
	stopping := httptest.NewServer(api.New(api.Options{Queue: q, Operator: &apitest.Operator{}, Draining: draining.Load, Drained: func() <-chan struct{} { return drained }}))
	defer stopping.Close()
	ends := endings(t)
	c := connect(t, stopping.Listener.Addr().String(), deadAddr(t), ends, node(t, q, &apitest.Operator{}))
	add := func(id string) {
		mustAdd(t, c, client.NewJob{ID: id, Topic: "t", Body: client.Text("")})
	}
	add("a")
	var got []string
	for j, err := range c.Stream(t.Context(), client.StreamOptions{Topics: []string{"t"}, Credit: 5}) {
		require.NoError(t, err)
		got = append(got, j.ID)
		if len(got) == 2 {
			break
		}
		draining.Store(true)
		close(drained)
		add("b")
	}
	require.Equal(t, []string{"a", "b"}, got)
}

// endings is a node that breaks every connection without an answer.
func endings(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestAStreamLeavesASilentNode(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connections are accepted, and that is all
	require.NoError(t, err)
	defer silent.Close()
	q := apitest.New(t)
	mute := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := w.Write([]byte("{\"event\":\"open\"}\n"))
		if err == nil {
			err = http.NewResponseController(w).Flush()
		}
		if err == nil {
			<-r.Context().Done()
		}
	}))
	defer mute.Close()
	good := node(t, q, &apitest.Operator{})
	c, err := client.New([]string{silent.Addr().String(), mute.Listener.Addr().String(), good}, client.WithTimeout(100*time.Millisecond))
	require.NoError(t, err)
	defer c.Close()
	_, err = connect(t, good).Add(t.Context(), client.NewJob{ID: "a", Topic: "t", Body: client.Text("")})
	require.NoError(t, err)
	got := 0
	for j, err := range c.Stream(t.Context(), client.StreamOptions{Topics: []string{"t"}, Heartbeat: time.Second, Max: 1}) {
		require.NoError(t, err)
		require.Equal(t, "a", j.ID)
		got++
	}
	require.Equal(t, 1, got)
}

func TestAStreamThatIsRefusedSaysWhy(t *testing.T) {
	for name, s := range map[string]struct {
		addr   string
		stream client.StreamOptions
		code   client.Code
	}{
		"bad request": {node(t, apitest.New(t), &apitest.Operator{}), client.StreamOptions{}, "invalid_argument"},
		"no node":     {deadAddr(t), client.StreamOptions{Topics: []string{"t"}}, client.CodeNotApplied},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := client.New([]string{s.addr}, client.WithPatience(0))
			require.NoError(t, err)
			defer c.Close()
			errs := 0
			for _, err := range c.Stream(t.Context(), s.stream) {
				errs++
				require.ErrorIs(t, err, s.code)
			}
			require.Equal(t, 1, errs)
		})
	}
}

// consume is the loop that docs/streaming.md shows.
func consume(ctx context.Context, c *client.Client, send func([]byte) error) error {
	for j, err := range c.Stream(ctx, client.StreamOptions{Topics: []string{"mail"}, Credit: 20}) {
		if err != nil {
			return err
		}
		if err := send(j.Bytes()); err != nil {
			_, err = c.Release(ctx, j.Ref(), client.ReleaseOptions{Reason: err.Error()})
			if err != nil {
				return err
			}
			continue
		}
		if err := c.Finish(ctx, j.Ref()); err != nil {
			return err
		}
	}
	return nil
}

func TestTheLoopOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/streaming.md")
	require.NoError(t, err)
	_, shown, found := strings.Cut(string(page), "```go\n")
	require.True(t, found)
	shown, _, _ = strings.Cut(shown, "```")
	source, err := os.ReadFile("stream_test.go")
	require.NoError(t, err)
	require.Contains(t, strings.ReplaceAll(string(source), "\n\t", "\n"), shown, "the page shows what runs here")

	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	for _, id := range []string{"a", "b"} {
		mustAdd(t, c, client.NewJob{ID: id, Topic: "mail", Body: client.Text(id)})
	}
	ctx, cancel := context.WithCancel(t.Context())
	var sent []string
	err = consume(ctx, c, func(body []byte) error {
		sent = append(sent, string(body))
		switch len(sent) {
		case 1:
			return errors.New("no route")
		case 3:
			cancel() // the finish of this job fails
		}
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.ElementsMatch(t, []string{"a", "b", "a"}, sent, "the one that failed came again")
	j, err := c.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "no route", j.LastError)
}
