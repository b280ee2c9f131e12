package client_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/client"
)

func TestAReplyThatIsNotWhatTheCallGivesIsNoSuccess(t *testing.T) {
	var reply string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write([]byte(reply))
		require.NoError(t, err)
	}))
	defer server.Close()
	c, err := client.New([]string{server.URL}, client.WithPatience(0))
	require.NoError(t, err)
	defer c.Close()

	const nothing, noID = `{"success":true}`, `{"success":true,"results":[{"success":true}]}`
	ref := client.Ref{ID: "a", Token: "0-1-1"}
	adds := []client.NewJob{{ID: "a", Topic: "t", Body: client.Text("x")}}
	found := client.Selection{Filter: client.Filter{IDPrefix: "a"}}
	second := func(_ any, err error) error { return err }
	third := func(_ any, _ string, err error) error { return err }
	type row struct {
		reply string
		call  func(ctx context.Context) error
	}
	for i, one := range []row{
		{nothing, func(ctx context.Context) error { return second(c.Add(ctx, adds[0])) }},
		{`{"success":true,"id":"a","seq":"1","state":"ready"}`, func(ctx context.Context) error { return second(c.Add(ctx, adds[0])) }},
		{nothing, func(ctx context.Context) error { return second(c.AddBatch(ctx, adds)) }},
		{`{"success":true,"results":[]}`, func(ctx context.Context) error { return second(c.AddBatch(ctx, adds)) }},
		{`{"success":true,"results":[{}]}`, func(ctx context.Context) error { return second(c.AddBatch(ctx, adds)) }},
		{noID, func(ctx context.Context) error { return second(c.AddBatch(ctx, adds)) }},
		{noID, func(ctx context.Context) error { return second(c.AddAll(ctx, adds)) }},
		{noID, func(ctx context.Context) error { return second(c.FinishThen(ctx, ref, adds)) }},
		{nothing, func(ctx context.Context) error { return second(c.Update(ctx, "a", client.Update{})) }},
		{nothing, func(ctx context.Context) error { return c.Delete(ctx, ref) }},
		{nothing, func(ctx context.Context) error { return second(c.Reserve(ctx, client.ReserveOptions{})) }},
		{`{"success":true,"jobs":[{"id":"a"}]}`, func(ctx context.Context) error { return second(c.Reserve(ctx, client.ReserveOptions{})) }},
		{`{"success":true,"jobs":[],"finished":[{}]}`, func(ctx context.Context) error {
			_, _, err := c.FinishAndReserve(ctx, []client.Ref{ref}, client.ReserveOptions{})
			return err
		}},
		{nothing, func(ctx context.Context) error { return c.Finish(ctx, ref) }},
		{noID, func(ctx context.Context) error { return second(c.FinishBatch(ctx, []client.Ref{ref})) }},
		{noID, func(ctx context.Context) error { return second(c.DeleteBatch(ctx, []client.Ref{ref})) }},
		{noID, func(ctx context.Context) error { return second(c.KickBatch(ctx, []string{"a"})) }},
		{noID, func(ctx context.Context) error {
			return second(c.UpdateBatch(ctx, []client.JobUpdate{{ID: "a"}}))
		}},
		{nothing, func(ctx context.Context) error { return second(c.Touch(ctx, ref, 0)) }},
		{nothing, func(ctx context.Context) error { return second(c.DeleteJobs(ctx, found)) }},
		{nothing, func(ctx context.Context) error { return second(c.Topics().Purge(ctx, "t", "dead", client.Sweep{})) }},
		{nothing, func(ctx context.Context) error { return second(c.Topics().Pause(ctx, "t", 0)) }},
		{nothing, func(ctx context.Context) error { return second(c.Topics().SetSettings(ctx, "t", client.Settings{}, 0)) }},
		{nothing, func(ctx context.Context) error { return second(c.Schedules().Put(ctx, "s", client.Schedule{}, 0)) }},
		{nothing, func(ctx context.Context) error { return c.Schedules().Delete(ctx, "s", 0) }},
		{nothing, func(ctx context.Context) error { return c.Schedules().Pause(ctx, "s") }},
		{nothing, func(ctx context.Context) error { return second(c.Cluster().TransferLeadership(ctx, "")) }},
		{`{}`, func(ctx context.Context) error { return c.Cluster().RemoveMember(ctx, "n1") }},
		{`{}`, func(ctx context.Context) error { return c.Cluster().Admit(ctx, "n1") }},
	} {
		reply = one.reply
		err := one.call(t.Context())
		var e *client.Error
		require.ErrorAs(t, err, &e, "%d: %s", i, reply)
		require.True(t, e.Unknown, "%d: %s: %v", i, reply, err)
	}
	for i, one := range []row{
		{nothing, func(ctx context.Context) error { return second(c.Get(ctx, "a")) }},
		{noID, func(ctx context.Context) error { return second(c.GetBatch(ctx, []string{"a"}, true)) }},
		{nothing, func(ctx context.Context) error { return second(c.History(ctx, "a")) }},
		{nothing, func(ctx context.Context) error { return second(c.Explain(ctx, "a")) }},
		{nothing, func(ctx context.Context) error { return third(c.JobsPage(ctx, client.ListOptions{Topic: "t"}, "")) }},
		{`{"success":true,"jobs":[{}]}`, func(ctx context.Context) error { return third(c.JobsPage(ctx, client.ListOptions{Topic: "t"}, "")) }},
		{nothing, func(ctx context.Context) error {
			return second(client.Collect(c.Topics().List(ctx, client.PageOptions{})))
		}},
		{nothing, func(ctx context.Context) error { return second(c.Topics().Get(ctx, "t")) }},
		{nothing, func(ctx context.Context) error { return second(c.Topics().Stats(ctx)) }},
		{nothing, func(ctx context.Context) error { return second(c.Topics().Rates(ctx, "t")) }},
		{nothing, func(ctx context.Context) error { return second(c.Topics().Settings(ctx, "t")) }},
		{nothing, func(ctx context.Context) error {
			return second(client.Collect(c.Topics().AllSettings(ctx, client.PageOptions{})))
		}},
		{nothing, func(ctx context.Context) error { return second(c.Schedules().Get(ctx, "s")) }},
		{nothing, func(ctx context.Context) error {
			return second(client.Collect(c.Schedules().List(ctx, client.PageOptions{})))
		}},
		{nothing, func(ctx context.Context) error { return second(c.Schedules().Runs(ctx, "s")) }},
		{nothing, func(ctx context.Context) error { return second(c.Cluster().Members(ctx)) }},
		{nothing, func(ctx context.Context) error { return second(c.Cluster().Removed(ctx)) }},
		{nothing, func(ctx context.Context) error { return second(c.Cluster().Admission(ctx)) }},
		{nothing, func(ctx context.Context) error { return second(c.Cluster().Invitations(ctx)) }},
		{nothing, func(ctx context.Context) error { return second(c.Cluster().Health(ctx)) }},
		{nothing, func(ctx context.Context) error { return second(c.Cluster().Clocks(ctx)) }},
		{nothing, func(ctx context.Context) error { return second(c.Cluster().Verify(ctx)) }},
		{nothing, func(ctx context.Context) error { return second(c.Topics().Forecast(ctx, "t", client.ForecastSteps{})) }},
		{nothing, func(ctx context.Context) error {
			return second(c.Topics().ForecastTopics(ctx, client.ForecastSteps{}, 0))
		}},
	} {
		reply = one.reply
		err := one.call(t.Context())
		require.ErrorIs(t, err, client.CodeNotApplied, "%d: %s: %v", i, reply, err)
	}
}
