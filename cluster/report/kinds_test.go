package report

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyWhatIsBrokenMakesAClusterUnhealthy(t *testing.T) {
	for name, c := range map[string]struct {
		kinds    []Kind
		healthy  bool
		severity string
	}{
		"nothing":                    {nil, true, None},
		"what is to be done in time": {[]Kind{LimitNear, CertificateEnds, TwoVoters, BackupUnscheduled, NodeVotes}, true, Warning},
		"a node is down":             {[]Kind{LimitNear, NodeDown}, false, Warning},
		"clients are affected":       {[]Kind{AddsRefused, NodeDown}, false, Critical},
		"there is no leader":         {[]Kind{NoLeader}, false, Critical},
	} {
		var h Health
		for _, k := range c.kinds {
			h.Problems = append(h.Problems, NewProblem(k, "", "it is %s", k))
		}
		h.Conclude()
		require.Equal(t, c.healthy, h.Healthy, name)
		require.Equal(t, c.severity, h.Severity(), name)
		require.Len(t, h.Reasons, len(c.kinds), name)
	}
}

func TestTheReasonsOfAnEarlierReleaseAreProblems(t *testing.T) {
	h := &Health{Reasons: []string{"100% of n3 is gone"}}
	h.Complete()
	require.Equal(t, "100% of n3 is gone", Texts(h.Problems))
	require.True(t, h.Problems[0].Unhealthy)
	h.Complete()
	require.Len(t, h.Problems, 1)
	(*Health)(nil).Complete()
}
