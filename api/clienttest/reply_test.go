package clienttest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api"
	"tarry/api/apitest"
	"tarry/client"
	"tarry/job"
)

// replying is a client of a server that returns the same to each request.
func replying(t *testing.T, reply http.HandlerFunc) *client.Client {
	t.Helper()
	s := httptest.NewServer(reply)
	t.Cleanup(s.Close)
	c, err := client.New([]string{s.Listener.Addr().String()}, client.WithPatience(0))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// What does not say what was done may come from anything: nothing is known.
func TestAReplyThatDoesNotSayWhatWasDoneIsUnknown(t *testing.T) {
	ref := client.Ref{ID: "a", Token: "0-1-1"}
	calls := map[string]func(context.Context, *client.Client) error{
		"add": func(ctx context.Context, c *client.Client) error {
			_, err := c.Add(ctx, client.NewJob{ID: "a", Topic: "t"})
			return err
		},
		"update": func(ctx context.Context, c *client.Client) error {
			_, err := c.Update(ctx, "a", client.Update{})
			return err
		},
		"release": func(ctx context.Context, c *client.Client) error {
			_, err := c.Release(ctx, ref, client.ReleaseOptions{})
			return err
		},
		"touch": func(ctx context.Context, c *client.Client) error { _, err := c.Touch(ctx, ref, 0); return err },
		"reserve": func(ctx context.Context, c *client.Client) error {
			_, err := c.Reserve(ctx, client.ReserveOptions{Topics: []string{"t"}})
			return err
		},
		"run": func(ctx context.Context, c *client.Client) error {
			_, err := c.Schedules().Run(ctx, "s", "k")
			return err
		},
		"add batch": func(ctx context.Context, c *client.Client) error {
			list, err := c.AddBatch(ctx, []client.NewJob{{Topic: "t"}})
			if err == nil {
				err = list[0].Err
			}
			return err
		},
		"finish": func(ctx context.Context, c *client.Client) error { return c.Finish(ctx, ref) },
		"delete": func(ctx context.Context, c *client.Client) error { return c.Delete(ctx, ref) },
		"leave":  func(ctx context.Context, c *client.Client) error { return c.Node().Leave(ctx) },
	}
	replies := map[string]string{
		"success alone": `{"success":true}`, "an empty item": `{"success":true,"results":[{"success":true}]}`,
		"nothing": `{}`, "null": `null`, "a list": `[]`, "text": `hello`, "half": `{"success":tr`, "two": `{} {}`,
	}
	for name, call := range calls {
		for what, reply := range replies {
			if strings.HasPrefix(reply, `{"success":true`) && (name == "finish" || name == "delete" || name == "leave") {
				continue // they give nothing else
			}
			t.Run(name+"/"+what, func(t *testing.T) {
				c := replying(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, reply) })
				err := call(t.Context(), c)
				require.ErrorIs(t, err, client.CodeUnknown, "%v", err)
				var e *client.Error
				require.ErrorAs(t, err, &e)
				require.True(t, e.Unknown)
			})
		}
	}
}

func TestALongReplyIsCutOff(t *testing.T) {
	for name, reply := range map[string]struct{ head, rest, says string }{
		"text":         {``, strings.Repeat("x", 1<<20), "invalid character"},
		"a string":     {`{"success":true,"id":"`, strings.Repeat("x", 1<<20), "longer than 8388608 bytes"},
		"white space":  {`{"success":true,`, strings.Repeat(" ", 1<<20), "longer than 8388608 bytes"},
		"empty topics": {`{"topics":[{}`, strings.Repeat(",{}", 1<<10), "more than 1000 items"},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			c := replying(t, func(w http.ResponseWriter, _ *http.Request) {
				for _, err := fmt.Fprint(w, reply.head); err == nil; _, err = fmt.Fprint(w, reply.rest) {
					sent.Add(int64(len(reply.rest)))
				}
			})
			_, err := client.Collect(c.Topics().List(t.Context(), client.PageOptions{}))
			require.ErrorContains(t, err, reply.says)
			require.Less(t, sent.Load(), int64(24<<20))
		})
	}
	// Of an error the client keeps little.
	c := replying(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		for err := error(nil); err == nil; _, err = w.Write(make([]byte, 1<<20)) {
		}
	})
	_, err := c.Add(t.Context(), client.NewJob{Topic: "t"})
	require.ErrorContains(t, err, "502")
}

// The longest replies that a node gives are read: every byte of the bodies takes six.
func TestTheLongestRepliesAreRead(t *testing.T) {
	const limit = time.Hour // of calls: a busy machine takes minutes to encode and read 400 MB
	q := apitest.New(t)
	s := httptest.NewServer(api.New(api.Options{Queue: q, Operator: &apitest.Operator{}, MaxBodyBytes: job.HardMaxBodyBytes, MaxBufferedBytes: 1 << 30, Timeout: limit}))
	defer s.Close()
	c, err := client.New([]string{s.Listener.Addr().String()}, client.WithTimeout(limit))
	require.NoError(t, err)
	defer c.Close()
	body := client.Text(strings.Repeat("\x01", job.HardMaxBodyBytes))
	for range 4 {
		mustAdd(t, c, client.NewJob{Topic: "t", Body: body})
	}
	jobs, _, err := c.JobsPage(t.Context(), client.ListOptions{Topic: "t", Bodies: true}, "")
	require.NoError(t, err)
	j, err := c.Get(t.Context(), jobs[0].ID)
	require.NoError(t, err)
	require.Len(t, j.Bytes(), job.HardMaxBodyBytes)
	one, err := c.Reserve(t.Context(), client.ReserveOptions{Topics: []string{"t"}})
	require.NoError(t, err)
	require.Len(t, one, 1)
	_, err = c.Release(t.Context(), one[0].Ref(), client.ReleaseOptions{})
	require.NoError(t, err)
	all, err := c.Reserve(t.Context(), client.ReserveOptions{Topics: []string{"t"}, Max: 10})
	require.NoError(t, err)
	require.Len(t, all, 4)
}

// A reply that breaks off leaves nothing in that of the next attempt.
func TestAnAttemptStartsWithAnEmptyReply(t *testing.T) {
	var calls atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"topics":[{"topic":"stale"}],"next":"stale"`)
			return
		}
		fmt.Fprint(w, `{"topics":[]}`)
	}))
	defer s.Close()
	c := connect(t, s.Listener.Addr().String())
	topics, err := client.Collect(c.Topics().List(t.Context(), client.PageOptions{}))
	require.NoError(t, err)
	require.Empty(t, topics)
	require.EqualValues(t, 2, calls.Load(), "no next page")
}
