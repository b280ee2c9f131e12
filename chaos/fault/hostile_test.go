//go:build linux

package fault

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/chaos/stranger"
)

// CHAOS_ATTACKS names the attacks to try; "all" means all. Without it the quickest of each
// port are tried.
func TestAttacksCauseNoHarm(t *testing.T) {
	var e *Env
	list := os.Getenv("CHAOS_ATTACKS")
	if list == "" {
		list = "raft-far-term,rpc-read,rpc-propose,gossip-counts,gossip-forged-addresses,http-wrong-host,http-huge-lists,http-deep-json,beanstalkd-http"
	}
	known, harmed := 0, false
	for _, a := range slices.Concat(stranger.ClusterPort(), stranger.GossipPort(), stranger.HTTPPort(), stranger.BeanstalkdPort()) {
		if list != "all" && !slices.Contains(strings.Split(list, ","), a.Name) {
			continue
		}
		known++
		if e == nil || harmed {
			e = onLoopback(t)
		}
		t.Run(a.Name, func(t *testing.T) {
			mine := *e
			mine.Violate = func(invariant, format string, args ...any) { t.Errorf(invariant+": "+format, args...) }
			require.NoError(t, mine.attacked(t.Context(), []stranger.Attack{a}))
			e.Claimed.Release(&mine)
		})
		harmed = t.Failed()
	}
	if list != "all" {
		require.Equal(t, strings.Count(list, ",")+1, known)
	}
}
