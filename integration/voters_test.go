package integration

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// Five voters serve without any two of them, seven without any three, the leader among them.
// With one more away nothing is acknowledged, and nothing that was is lost.
func TestFiveAndSevenVotersServeWithoutAMinority(t *testing.T) {
	t.Parallel()
	for _, size := range []int{5, 7} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			c := startCluster(t, size)
			nodes := c.followersFirst()
			kept, away := nodes[:size/2+1], nodes[size/2+1:] // the leader is the last
			c.waitHealthy(kept[0])
			var h struct {
				FailureTolerance int `json:"failure_tolerance"`
			}
			require.NoError(t, c.Get(t.Context(), kept[0], "/v1/cluster/health", &h))
			require.Equal(t, size/2, h.FailureTolerance)

			add := func(id string) error {
				status, _, answer := postJSON(t, kept[0], "/v1/jobs", fmt.Sprintf(`{"topic":"t","id":%q,"body":"x"}`, id))
				if status/100 != 2 {
					return fmt.Errorf("%d %s", status, answer)
				}
				return nil
			}
			c.until(func() error { return add("with-all") })
			c.kill(away...)
			c.until(func() error { return add("without-a-minority") })

			c.kill(kept[1])
			status, _, answer := postJSON(t, kept[0], "/v1/jobs", `{"topic":"t","id":"without-a-majority","body":"x"}`)
			require.Contains(t, []int{http.StatusServiceUnavailable, http.StatusGatewayTimeout}, status, answer)

			c.start(kept[1])
			c.until(func() error { return add("with-a-majority-again") })
			for _, id := range []string{"with-all", "without-a-minority", "with-a-majority-again"} {
				require.NoError(t, c.Get(t.Context(), kept[0], "/v1/jobs/"+id, nil), id)
			}
			c.start(away...)
			c.waitHealthy(kept[0])
			c.requireEqualDigests(c.leader(), size)
		})
	}
}
