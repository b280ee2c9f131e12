package integration

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A node that is not to vote gets everything, serves clients, and is left out of every majority
// until it is started without the flag.
func TestANonVoterFollowsAndNeverVotes(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	reader, err := c.Add("reader")
	require.NoError(t, err)
	reader.Setenv("TARRY_NON_VOTER", "true")
	c.start(reader)
	c.until(func() error {
		members, err := c.Members(t.Context(), reader)
		if err == nil && len(members) != 4 {
			err = fmt.Errorf("%d members", len(members))
		}
		return err
	})
	// A node that joins after it votes, so it would, too.
	later, err := c.Add("later")
	require.NoError(t, err)
	c.start(later)
	c.until(func() error {
		members, err := c.Members(t.Context(), reader)
		for _, m := range members {
			if m.ID == "later" && m.Voter {
				return nil
			}
		}
		return fmt.Errorf("later does not vote: %+v, %v", members, err)
	})
	c.waitHealthy(reader)
	require.Regexp(t, `reader +follower +never +yes`, c.tarry("cluster", "members"))
	require.Regexp(t, `later +follower +yes +yes`, c.tarry("cluster", "members"))

	status, _, body := postJSON(t, reader, "/v1/jobs", `{"topic":"t","id":"a","delay":3600,"body":"x"}`)
	require.Equal(t, http.StatusCreated, status, body)
	var j struct{ State string }
	c.until(func() error { return c.Get(t.Context(), reader, "/v1/jobs/a?consistency=stale", &j) })
	require.Equal(t, "delayed", j.State)

	// Two of four voters are no majority, and the reader is no third.
	voters := append(c.Nodes()[:0:0], c.Nodes()[:3]...)
	c.kill(voters[:2]...)
	c.until(func() error {
		var h struct{ Reasons []string }
		if err := c.Get(t.Context(), reader, "/v1/cluster/health", &h); err != nil {
			return err
		}
		for _, why := range h.Reasons {
			if why == "no leader is known to reader" {
				return nil
			}
		}
		return fmt.Errorf("there is a leader: %q", h.Reasons)
	})
	require.NoError(t, c.Get(t.Context(), reader, "/v1/jobs/a?consistency=stale", &j), "it serves what it has")
	c.start(voters[:2]...)
	c.waitReady(reader)

	c.terminate(reader)
	reader.Setenv("TARRY_NON_VOTER", "false")
	c.start(reader)
	c.waitVoters(reader, "n1", "n2", "n3", "later", "reader")
}
