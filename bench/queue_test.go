package bench

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHTTPQueueSpeaksToItsTopic(t *testing.T) {
	var calls []string
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls = append(calls, r.URL.Path+" "+string(body))
		io.WriteString(w, `{"success":true,"jobs":[{"id":"$0-1","token":"0-1-1","body":"hello"}]}`)
	})
	q := NewHTTPQueue(t.Context(), addr, "mail")
	defer q.Close()
	due := time.UnixMilli(1_800_000_000_123)
	require.NoError(t, q.Put("a", due))
	require.NoError(t, q.Put("a", time.Time{}))
	require.NoError(t, q.PutMany([]string{"a", "b"}, func(i int) time.Time { return due.Add(time.Duration(i) * time.Second) }))
	body, err := q.Reserve()
	require.NoError(t, err)
	require.Equal(t, "hello", body)
	require.NoError(t, q.Delete())
	body, err = q.DeleteAndReserve()
	require.NoError(t, err)
	require.Equal(t, "hello", body)
	require.Equal(t, []string{
		`/v1/jobs {"topic":"mail","ttr":60,"due_at":1800000000123,"body":"a"}`,
		`/v1/jobs {"topic":"mail","ttr":60,"body":"a"}`,
		`/v1/jobs/batch {"jobs":[{"topic":"mail","ttr":60,"due_at":1800000000123,"body":"a"},{"topic":"mail","ttr":60,"due_at":1800000001123,"body":"b"}]}`,
		`/v1/reserve {"topics":["mail"],"max":1,"wait":1}`,
		`/v1/jobs/$0-1/finish {"token":"0-1-1"}`,
		`/v1/reserve {"topics":["mail"],"max":1,"wait":1,"finish":[{"token":"0-1-1"}]}`,
	}, calls)
}

func TestTubeQueuePutsReservesAndDeletes(t *testing.T) {
	s := &tubeServer{}
	q := NewTubeQueue(t.Context(), serveTubes(t, s), "mail")
	defer q.Close()
	body, err := q.Reserve()
	require.NoError(t, err)
	require.Empty(t, body)
	require.NoError(t, q.Put("one", time.Now().Add(time.Hour)))
	require.NoError(t, q.PutMany([]string{"two", "three"}, func(int) time.Time { return time.Time{} }))
	for _, want := range []string{"one", "two", "three"} {
		body, err := q.Reserve()
		require.NoError(t, err)
		require.Equal(t, want, body)
		require.NoError(t, q.Delete())
	}
	require.Equal(t, []string{"use mail", "watch mail", "ignore default"}, s.lines)
	require.Equal(t, 3, s.deletes)
}

func TestTubeQueueRoundsToTheNearestSecond(t *testing.T) {
	for due, put := range map[time.Time]string{
		{}:                                "put 1024 0 60 1\r\nx\r\n",
		time.Now().Add(time.Hour):         "put 1024 3600 60 1\r\nx\r\n",
		time.Now().Add(time.Second - 1e6): "put 1024 1 60 1\r\nx\r\n",
		time.Now().Add(time.Second + time.Second): "put 1024 2 60 1\r\nx\r\n",
	} {
		q := &TubeQueue{}
		q.appendJob("x", due)
		require.Equal(t, put, string(q.out))
	}
}
