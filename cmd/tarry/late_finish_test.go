package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/client"
)

// The whole way: a node whose timer ends the reservation, and a consumer that
// finishes after it.
func TestAConsumerThatIsLateFinishesWhereTheTopicAcceptsIt(t *testing.T) {
	addr, _ := runNode(t, "--beanstalk-addr", "off")
	require.Eventually(t, func() bool { return status(addr, "/readyz") == http.StatusOK }, 30*time.Second, 10*time.Millisecond)
	c, err := client.New([]string{addr})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Topics().SetSettings(t.Context(), "bills", client.Settings{LateFinish: "refuse"}, 0)
	require.NoError(t, err)
	for topic, want := range map[string]error{"mail": nil, "bills": client.CodeStaleToken} {
		_, err := c.Add(t.Context(), client.NewJob{ID: topic + "-1", Topic: topic, Body: client.Text("x"), TTR: 20 * time.Millisecond})
		require.NoError(t, err)
		jobs, err := c.Reserve(t.Context(), client.ReserveOptions{Topics: []string{topic}, Wait: 10 * time.Second})
		require.NoError(t, err)
		require.Len(t, jobs, 1)
		require.Eventually(t, func() bool {
			j, err := c.Get(t.Context(), topic+"-1")
			return err == nil && j.State == "ready"
		}, 30*time.Second, 5*time.Millisecond)
		require.ErrorIs(t, c.Finish(t.Context(), jobs[0].Ref()), want, topic)
	}
}
