package clienttest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/client"
)

func TestJobsAreFoundByHeaderAndChanged(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	ctx := t.Context()
	order := func(id string) client.Filter { return client.Filter{Headers: map[string]string{"order": id}} }
	for _, topic := range []string{"mail", "push"} {
		set, err := c.Topics().SetSettings(ctx, topic, client.Settings{IndexHeaders: []string{"order"}}, 0)
		require.NoError(t, err)
		require.Equal(t, []string{"order"}, set.Settings.IndexHeaders)
		for i, delay := range []time.Duration{time.Hour, time.Hour, 0} {
			mustAdd(t, c, client.NewJob{ID: fmt.Sprint(topic, i), Topic: topic, Body: client.Text("x"), Delay: delay, Headers: map[string]string{"order": "5"}})
		}
	}
	mustAdd(t, c, client.NewJob{ID: "other", Topic: "mail", Body: client.Text("x"), Headers: map[string]string{"order": "6"}})
	require.Equal(t, []string{"mail0", "mail1", "mail2", "push0", "push1", "push2"}, ids(t, c, client.ListOptions{Filter: order("5"), Page: 4}))

	got, err := c.UpdateJobs(ctx, client.Selection{Topic: "push", Filter: order("5")}, client.Update{Headers: map[string]string{"order": "7"}})
	require.NoError(t, err)
	require.Equal(t, client.ChangedJobs{Count: 3}, got)
	got, err = c.KickJobs(ctx, client.Selection{Filter: order("7"), State: "delayed"}, "mail")
	require.NoError(t, err)
	require.Equal(t, client.ChangedJobs{Count: 2}, got)
	got, err = c.KickJobs(ctx, client.Selection{Filter: order("7")}, "")
	require.NoError(t, err)
	require.Equal(t, 3, got.Skipped)
	require.Contains(t, got.Reason, "neither dead nor delayed")
	got, err = c.DeleteJobs(ctx, client.Selection{Filter: order("5"), Max: 2})
	require.NoError(t, err)
	require.Equal(t, []any{2, true}, []any{got.Count, got.More})
	got, err = c.DeleteJobs(ctx, client.Selection{Filter: order("5"), Cursor: got.Next})
	require.NoError(t, err)
	require.Equal(t, client.ChangedJobs{Count: 1}, got)
	require.Equal(t, []string{"other"}, ids(t, c, client.ListOptions{Filter: order("6")}))
	_, err = c.DeleteJobs(ctx, client.Selection{Filter: client.Filter{Headers: map[string]string{"order": ""}}})
	require.ErrorContains(t, err, "header.order is empty")
}

// A listing that may lack jobs ends with an error, behind the jobs that there are.
func TestAnIncompleteListingSaysSo(t *testing.T) {
	pages := []string{`{"success":true,"incomplete":true,"jobs":[{"id":"a","topic":"t","state":"ready"}],"next":"x"}`,
		`{"success":true,"jobs":[{"id":"b","topic":"t","state":"ready"}]}`}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := pages[0]
		if r.URL.Query().Has("cursor") {
			page = pages[1]
		}
		_, err := w.Write([]byte(page))
		require.NoError(t, err)
	}))
	t.Cleanup(s.Close)
	c := connect(t, s.Listener.Addr().String())
	var got []string
	var errs []error
	for j, err := range c.Jobs(t.Context(), client.ListOptions{Filter: client.Filter{Headers: map[string]string{"order": "5"}}}) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		got = append(got, j.ID)
	}
	require.Equal(t, []string{"a", "b"}, got)
	require.Equal(t, []error{client.ErrIncomplete}, errs)
}
