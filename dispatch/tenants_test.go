package dispatch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever one tenant's topics have, the reserves for another's are proposed at the same time,
// and apart, so that they can take turns behind the dispatcher.
func TestReadyJobsOfOneTenantDoNotHoldUpAnothers(t *testing.T) {
	s := newShard(5000)
	s.d.Tenants(func(topic string) string { name, _, _ := strings.Cut(topic, "."); return name })
	for range 1000 {
		s.addWaiter(1, "loud.a", "loud.b")
	}
	_, quiet := s.addWaiter(1, "quiet.a")
	_, mixed := s.addWaiter(1, "quiet.b", "loud.a")
	s.ready["loud.a"], s.ready["loud.b"], s.ready["quiet.a"], s.ready["quiet.b"] = 2000, 2000, 1, 1
	s.d.Update([]Update{{Topic: "loud.a", Ready: 500}, {Topic: "quiet.a", Ready: 1}, {Topic: "loud.b", Ready: 500}, {Topic: "quiet.b", Ready: 1}})
	ofQuiet := 0
	for _, p := range s.pending {
		tenants := map[string]bool{}
		for _, op := range p.ops {
			name, _, _ := strings.Cut(op.GetReserve().Topics[0], ".")
			tenants[name] = true
		}
		require.Len(t, tenants, 1, "no proposal is for two tenants")
		if tenants["quiet"] {
			ofQuiet++
		}
	}
	require.Equal(t, 2, ofQuiet, "all that is ready is proposed at once: %d proposals", len(s.pending))
	s.settle()
	require.Len(t, quiet.jobs, 1)
	require.Len(t, mixed.jobs, 1)
}

func TestWithoutTenantsProposalsAreShared(t *testing.T) {
	s := newShard(10)
	for i := range 5 {
		s.addWaiter(1, fmt.Sprint(i))
	}
	var all []Update
	for i := range 5 {
		s.ready[fmt.Sprint(i)] = 1
		all = append(all, Update{Topic: fmt.Sprint(i), Ready: 1})
	}
	s.d.Update(all)
	require.Len(t, s.pending, 1)
	s.settle()
}
