package clienttest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/client"
)

func TestForecastOfATopicAndOfAll(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	start := time.Now().UTC().Truncate(time.Hour).Add(48 * time.Hour)
	for topic, due := range map[string][]time.Duration{"mail": {0, time.Minute, 90 * time.Second, time.Hour}, "work": {time.Minute}} {
		for _, after := range due {
			mustAdd(t, c, client.NewJob{Topic: topic, Body: client.Text("x"), DueAt: start.Add(after)})
		}
	}
	steps := client.ForecastSteps{Start: start, Step: time.Minute, Steps: 3}
	f, err := c.Topics().Forecast(t.Context(), "mail", steps)
	require.NoError(t, err)
	require.Equal(t, client.Forecast{Topic: "mail", Start: start, Step: client.Duration{Duration: time.Minute}, Jobs: []uint64{1, 2, 0}, After: 1}, f)
	f, err = c.Topics().Forecast(t.Context(), "", steps)
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 3, 0}, f.Jobs)

	f, err = c.Topics().Forecast(t.Context(), "", client.ForecastSteps{})
	require.NoError(t, err)
	require.Len(t, f.Jobs, 24)
	require.Equal(t, time.Hour, f.Step.Duration)

	due, err := c.Topics().ForecastTopics(t.Context(), client.ForecastSteps{Start: start, Step: time.Hour}, 1)
	require.NoError(t, err)
	require.Equal(t, uint64(4), due.Jobs)
	require.Equal(t, []client.DueTopic{{Topic: "mail", Jobs: 3}}, due.Topics)

	_, err = c.Topics().Forecast(t.Context(), "mail", client.ForecastSteps{Step: time.Second})
	require.ErrorIs(t, err, client.CodeInvalidArgument)
}
