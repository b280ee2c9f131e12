package clienttest

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/client"
)

// bury adds dead jobs to a topic without ready ones.
func bury(t *testing.T, c *client.Client, topic string, ids ...string) {
	t.Helper()
	for _, id := range ids {
		mustAdd(t, c, client.NewJob{ID: id, Topic: topic, Body: client.Text(id), Headers: map[string]string{"first": id[:1]}})
		mustReserve(t, c, topic)
		_, err := c.Bury(t.Context(), client.Ref{ID: id}, client.BuryOptions{Reason: "no " + id})
		require.NoError(t, err)
	}
}

func ids(t *testing.T, c *client.Client, q client.ListOptions) (list []string) {
	t.Helper()
	for j, err := range c.Jobs(t.Context(), q) {
		require.NoError(t, err)
		list = append(list, j.ID)
	}
	return list
}

func TestJobsAreListedOverPages(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	bury(t, c, "t/1", "a1", "b1", "a2", "a3")
	mustAdd(t, c, client.NewJob{ID: "d", Topic: "t/1", Body: client.Text("x"), Delay: time.Hour})
	soon := time.Now().Add(time.Minute)
	for _, c2 := range []struct {
		q    client.ListOptions
		want []string
	}{
		{client.ListOptions{Topic: "t/1", Page: 2}, []string{"d", "a1", "b1", "a2", "a3"}},
		{client.ListOptions{Topic: "t/1", State: "dead", Page: 1}, []string{"a1", "b1", "a2", "a3"}},
		{client.ListOptions{Filter: client.Filter{IDPrefix: "a"}, Page: 1}, []string{"a1", "a2", "a3"}},
		{client.ListOptions{Topic: "t/1", Filter: client.Filter{Reason: "no b"}}, []string{"b1"}},
		{client.ListOptions{Topic: "t/1", Filter: client.Filter{Headers: map[string]string{"first": "b"}}}, []string{"b1"}},
		{client.ListOptions{Topic: "t/1", Filter: client.Filter{DueFrom: soon}}, []string{"d"}},
		{client.ListOptions{Topic: "t/1", State: "dead", Filter: client.Filter{DueTo: soon, DiedTo: soon, DiedFrom: soon.Add(-time.Hour)}}, []string{"a1", "b1", "a2", "a3"}},
	} {
		require.Equal(t, c2.want, ids(t, c, c2.q), "%+v", c2.q)
	}
	for j, err := range c.Jobs(t.Context(), client.ListOptions{Topic: "t/1", State: "dead", Bodies: true, Page: 1}) {
		require.NoError(t, err)
		require.Equal(t, "a1", string(j.Bytes()))
		break // and no further page is asked for
	}
}

func TestAListingEndsWithItsError(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	for range c.Jobs(t.Context(), client.ListOptions{Topic: "t"}) {
		require.Fail(t, "there is none")
	}
	var got []error
	for j, err := range c.Jobs(t.Context(), client.ListOptions{Topic: "t", State: "gone"}) {
		require.Zero(t, j)
		got = append(got, err)
	}
	require.Len(t, got, 1)
	require.ErrorContains(t, got[0], `state is "gone"`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range c.Jobs(ctx, client.ListOptions{Topic: "t"}) {
		require.Error(t, err)
	}
}

func TestManyJobsAtOnce(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	ctx := t.Context()
	bury(t, c, "t", "a1", "b1", "a2", "a3")
	for i, step := range []struct {
		do   func() (client.Swept, error)
		want client.Swept
	}{
		{func() (client.Swept, error) {
			return c.Topics().Kick(ctx, "t", client.KickOptions{Sweep: client.Sweep{Max: 1, Filter: client.Filter{IDPrefix: "a"}}, ToTopic: "u"})
		}, client.Swept{Count: 1, More: true}},
		{func() (client.Swept, error) {
			return c.Topics().Kick(ctx, "t", client.KickOptions{Sweep: client.Sweep{Filter: client.Filter{Reason: "b1"}}, Rate: 0.5})
		}, client.Swept{Count: 1}},
		{func() (client.Swept, error) { return c.Topics().Purge(ctx, "t", "dead", client.Sweep{Max: 1}) }, client.Swept{Count: 1, More: true}},
		{func() (client.Swept, error) { return c.Topics().MoveAll(ctx, "t", "u", "dead") }, client.Swept{Count: 1}},
		{func() (client.Swept, error) { return c.Topics().MoveAll(ctx, "u", "v") }, client.Swept{Count: 2}},
	} {
		got, err := step.do()
		require.NoError(t, err, "step %d", i)
		require.Equal(t, step.want, got, "step %d", i)
	}
	require.Equal(t, []string{"a1", "a3"}, ids(t, c, client.ListOptions{Topic: "v"}))
	changed, err := c.KickTo(ctx, "a3", "w")
	require.NoError(t, err)
	require.Equal(t, client.StateReady, changed.State)
	_, err = c.Reserve(ctx, client.ReserveOptions{Topics: []string{"w"}, Consumer: "worker-1"})
	require.NoError(t, err)
	for consumer, want := range map[string]int{"worker-2": 0, "worker-1": 1} {
		released, err := c.Topics().Release(ctx, "w", consumer, "it is down", client.Sweep{})
		require.NoError(t, err)
		require.Equal(t, client.Swept{Count: want}, released, consumer)
	}
	changed, err = c.Move(ctx, client.Ref{ID: "a3"}, "v")
	require.NoError(t, err)
	require.Equal(t, client.StateReady, changed.State)
	_, err = c.Topics().Purge(ctx, "v", "reserved", client.Sweep{})
	require.ErrorContains(t, err, "dead, delayed or ready")
	require.Empty(t, ids(t, c, client.ListOptions{Topic: "w"}))
}

func TestJobsByIDAreAskedForUntilAllHaveCome(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	large := strings.Repeat("x", 1<<20)
	var ids []string
	for i := range 6 {
		ids = append(ids, strconv.Itoa(i))
		mustAdd(t, c, client.NewJob{ID: ids[i], Topic: "t", Body: client.Text(large)})
	}
	ids = append(ids, "nobody", "0")
	got, err := c.GetBatch(t.Context(), ids, true)
	require.NoError(t, err)
	require.Len(t, got, len(ids))
	for i, r := range got {
		if ids[i] == "nobody" {
			require.ErrorIs(t, r.Err, client.CodeNotFound)
			continue
		}
		require.NoError(t, r.Err)
		require.Equal(t, ids[i], r.ID)
		require.Equal(t, large, string(r.Bytes()))
	}
	got, err = c.GetBatch(t.Context(), ids[:1], false)
	require.NoError(t, err)
	require.Empty(t, got[0].Bytes())
	_, err = c.GetBatch(t.Context(), nil, true)
	require.ErrorContains(t, err, "ids has 0 items")
}

func TestJobsThatMatchAreMoved(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	ctx := t.Context()
	bury(t, c, "t", "a1", "b1", "a2", "a3")
	many := client.MoveOptions{Sweep: client.Sweep{Max: 2, Filter: client.Filter{IDPrefix: "a"}}, To: "u", States: []client.State{client.StateDead}}
	first, err := c.Topics().Move(ctx, "t", many)
	require.NoError(t, err)
	require.Equal(t, client.Moved{Count: 2, More: true, Next: first.Next}, first)
	many.Cursor = first.Next
	second, err := c.Topics().Move(ctx, "t", many)
	require.NoError(t, err)
	require.Equal(t, client.Moved{Count: 1}, second)
	require.Equal(t, []string{"a1", "a2", "a3"}, ids(t, c, client.ListOptions{Topic: "u"}))
	all, err := c.Topics().Move(ctx, "u", client.MoveOptions{To: "t"})
	require.NoError(t, err)
	require.Equal(t, client.Moved{Count: 3}, all, "without a filter")
	_, err = c.Topics().Move(ctx, "t", client.MoveOptions{To: "t"})
	require.ErrorContains(t, err, "the topic itself")
}
