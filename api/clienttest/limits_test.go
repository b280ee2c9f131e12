package clienttest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/client"
)

func TestLimitsOfATopic(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	ctx := t.Context()
	limits := client.Settings{MaxReserved: new(uint64(2)), Rate: new(0.5), Burst: new(uint64(1))}
	set, err := c.Topics().SetSettings(ctx, "mail", limits, 0)
	require.NoError(t, err)
	require.Equal(t, limits, set.Settings)
	for range 3 {
		mustAdd(t, c, client.NewJob{Topic: "mail", Body: client.Text("x")})
	}
	jobs, err := c.Reserve(ctx, client.ReserveOptions{Topics: []string{"mail"}, Max: 3})
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	topic, err := c.Topics().Get(ctx, "mail")
	require.NoError(t, err)
	require.False(t, topic.ThrottledUntil.IsZero())
	changed, err := c.Topics().ChangeSettings(ctx, "mail", client.Settings{}, "rate", "burst")
	require.NoError(t, err)
	require.Equal(t, client.Settings{MaxReserved: new(uint64(2))}, changed.Settings)
}
