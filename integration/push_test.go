package integration

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/client"
)

// TestPushOutlastsTheLeader: each job reaches the target, and is finished, though
// the leader that posts is killed in the middle.
func TestPushOutlastsTheLeader(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	posts := map[string]int{}
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		id := q.Header.Get("Tarry-Job-Id")
		if posts[id]++; posts[id] == 1 && len(posts)%10 == 0 {
			w.WriteHeader(http.StatusServiceUnavailable) // it is posted again
		}
	}))
	defer target.Close()
	c := startCluster(t, 3, "--push-allow", target.Listener.Addr().String())
	all := connectTo(t, patience, c.addrs()...)
	const jobs = 2000
	_, err := all.Topics().SetSettings(t.Context(), "hooks", client.Settings{
		Push:    &client.Push{URL: target.URL, Secret: "sixteen bytes or more"},
		Backoff: &client.Backoff{Delays: []client.Duration{{Duration: 100_000_000}}},
	}, client.AnyRevision)
	require.NoError(t, err)
	seen := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(posts)
	}
	leader := c.leader()
	for i := 0; i < jobs; i += 500 {
		var batch []client.NewJob
		for k := i; k < i+500; k++ {
			batch = append(batch, client.NewJob{ID: fmt.Sprint(k), Topic: "hooks", Body: client.Text("x")})
		}
		_, err := all.AddBatch(t.Context(), batch)
		require.NoError(t, err)
		if i == 500 {
			c.until(func() error {
				if seen() == 0 {
					return fmt.Errorf("nothing is pushed yet")
				}
				return nil
			})
			require.NoError(t, leader.Kill())
		}
	}
	c.until(func() error {
		topic, err := all.Topics().Get(context.Background(), "hooks")
		if err == nil && topic.Finished != jobs {
			err = fmt.Errorf("%+v", topic)
		}
		return err
	})
	require.Equal(t, jobs, seen())
	again := 0
	for _, n := range posts {
		again += n - 1
	}
	t.Logf("%d jobs, %d posts more than that", jobs, again)
	require.GreaterOrEqual(t, again, jobs/20, "those that were refused came again")
}
