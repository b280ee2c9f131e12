package ops

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

// A node that restarts counts its events anew. When it is asked next it may have as many as
// before.
func TestFollowShowsTheEventsOfANodeThatHasRestarted(t *testing.T) {
	process := client.ClusterEvents{Node: "n1", StartedAt: time.Unix(1000, 0)}
	happens := func(texts ...string) {
		for _, text := range texts {
			process.Events = append(process.Events, client.ClusterEvent{Number: uint64(len(process.Events) + 1), Kind: "leader", Event: text})
		}
	}
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply := process
		if from, _ := strconv.Atoi(r.URL.Query().Get("from")); from > 0 {
			reply.Events = reply.Events[min(from-1, len(reply.Events)):]
		}
		json.NewEncoder(w).Encode(reply)
	}))
	defer node.Close()
	w := newEventWatch(&cli.Terminal{Dial: func(nodes []string, _ time.Duration) (*client.Client, error) { return client.New(nodes) }})
	look := func() (texts []string) {
		list, err := w.look(t.Context(), []string{node.URL})
		require.NoError(t, err)
		for _, e := range list {
			texts = append(texts, e.Event)
		}
		return texts
	}
	happens("a", "b")
	require.Equal(t, []string{"a", "b"}, look())
	require.Empty(t, look())

	process = client.ClusterEvents{Node: "n1", StartedAt: time.Unix(2000, 0)}
	happens("c", "d", "e")
	require.Equal(t, []string{"c", "d", "e"}, look())
	happens("f")
	require.Equal(t, []string{"f"}, look())
}
