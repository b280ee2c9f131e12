package integration

import (
	"context"
	"net"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// untilEnd is how long a token lives that ends within a case: long enough to be made on a busy
// machine.
const untilEnd = 10 * time.Second

// TestClientConformanceTokens holds the client of each language to the cases with tokens. All of
// them use one cluster, one after the other.
func TestClientConformanceTokens(t *testing.T) {
	t.Parallel()
	cases := loadCases(t, filepath.Join("..", "clients", "conformance", "tokens.yaml"))
	c := startCluster(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	require.NoError(t, c.Enforce(ctx))
	anonymous := []object{{"topics": []string{"*"}, "verbs": []string{"observe", "read"}}} // for the harness
	c.until(func() error {
		return c.Put(ctx, c.leader(), "/v1/auth", object{"mode": "enforce", "anonymous": anonymous}, nil)
	})
	h := newHarness(t, c)
	for i, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			l.require(t)
			h.run(t, l.command(t), 100*(i+1), cases, func(r *caseRun) {
				leader, err := url.Parse("http://" + r.vars["leader"].(string))
				require.NoError(t, err)
				r.vars["root"] = c.Access().Token
				r.vars["soon"] = time.Now().Add(untilEnd).UTC().Format(time.RFC3339Nano)
				r.vars["later"] = time.Now().Add(time.Hour).UTC().Truncate(time.Second).Format(time.RFC3339)
				// An address of this machine that a client cannot know to be one.
				r.vars["away"] = "http://" + net.JoinHostPort("0.0.0.0", leader.Port())
			})
		})
	}
}
