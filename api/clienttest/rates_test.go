package clienttest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/client"
)

func TestRatesOfATopicAndOfAll(t *testing.T) {
	c := connect(t, node(t, apitest.New(t), &apitest.Operator{}))
	none, err := c.Topics().Rates(t.Context(), "mail")
	require.NoError(t, err)
	require.Empty(t, none.Added)
	mustAdd(t, c, client.NewJob{Topic: "mail", Body: client.Text("x")})
	mustAdd(t, c, client.NewJob{Topic: "work", Body: client.Text("x")})
	mustReserve(t, c, "mail")
	sum := func(topic string) (added, delivered uint64) {
		r, err := c.Topics().Rates(t.Context(), topic)
		require.NoError(t, err)
		require.Equal(t, 10*time.Second, r.Step.Duration)
		require.False(t, r.Start.IsZero())
		require.Len(t, r.Delivered, len(r.Added))
		for i := range r.Added {
			added += r.Added[i]
			delivered += r.Delivered[i]
		}
		return added, delivered
	}
	added, delivered := sum("mail")
	require.Equal(t, []uint64{1, 1}, []uint64{added, delivered})
	added, delivered = sum("work")
	require.Equal(t, []uint64{1, 0}, []uint64{added, delivered})
	added, delivered = sum("")
	require.Equal(t, []uint64{2, 1}, []uint64{added, delivered})
}
