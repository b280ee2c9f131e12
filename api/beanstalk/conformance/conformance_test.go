package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRealBeanstalkd holds the suite itself to the real server.
func TestRealBeanstalkd(t *testing.T) {
	t.Parallel()
	r := StartReal(t, Settings{})
	Run(t, Target{Addr: r.Addr(), Version: r.Version})
}

func TestLifeOfARealBeanstalkd(t *testing.T) {
	t.Parallel()
	RunLife(t, func(t *testing.T, s Settings) Server { return StartReal(t, s) })
}

func TestCasesHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Cases() {
		require.False(t, seen[c.Name], c.Name)
		seen[c.Name] = true
	}
}
