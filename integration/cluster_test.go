package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
)

func TestJobAddedOnOneNodeIsReservedOnAnother(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	leader := c.leader()
	var followers []*localcluster.Node
	for _, n := range c.Nodes() {
		if n != leader {
			followers = append(followers, n)
		}
	}
	added := post(t, followers[0].HTTP, "/v1/jobs", object{"topic": "mail", "id": "one", "delay": 0.5, "body": object{"to": "x"}})
	require.Equal(t, "delayed", added["state"])
	again := post(t, leader.HTTP, "/v1/jobs", object{"topic": "mail", "id": "one", "delay": 0.5, "body": object{"to": "x"}})
	require.Equal(t, true, again["existing"], "the same add is one job")

	j := reserveOne(t, followers[1].HTTP, "mail", 20)
	require.Equal(t, "one", j["id"])
	require.Equal(t, object{"to": "x"}, j["body"])
	require.Equal(t, added["due_at"], j["due_at"])
	finish(t, leader.HTTP, j)
	status, answer := try(t, followers[1].HTTP, "/v1/jobs/one/finish", object{"token": j["token"]})
	require.Equal(t, http.StatusNotFound, status, "%v", answer)
	c.requireEqualDigests(followers[0], 3)
}

func TestSingleNodeKeepsJobsOverKill(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	n := c.Nodes()[0]
	const jobs = 200
	for i := range jobs {
		post(t, n.HTTP, "/v1/jobs", object{"topic": "t", "id": fmt.Sprint(i), "body": i})
	}
	held := reserveOne(t, n.HTTP, "t", 5)
	c.kill(n)
	c.start(n)
	finish(t, n.HTTP, held) // a reservation outlives the process that gave it
	seen := map[string]bool{held["id"].(string): true}
	for len(seen) < jobs {
		j := reserveOne(t, n.HTTP, "t", 20)
		require.False(t, seen[j["id"].(string)], "job %v came twice", j["id"])
		require.Equal(t, fmt.Sprint(j["body"]), j["id"])
		seen[j["id"].(string)] = true
		finish(t, n.HTTP, j)
	}
}

// The idle node gets time to finish what the adds left to do (flushes and
// compactions of its store), then is watched.
const (
	idleSettle = 5 * time.Second
	idleWindow = 10 * time.Second
)

func TestIdleNodeWithManyDelayedJobsSleeps(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	n := c.Nodes()[0]
	jobs := number(t, "TARRY_IDLE_JOBS", 50_000)
	for done := 0; done < jobs; done += 1000 {
		var items []object
		for i := range 1000 {
			items = append(items, object{"topic": "t", "delay": 86400 + done + i, "body": "later"})
		}
		post(t, n.HTTP, "/v1/jobs/batch", object{"jobs": items})
	}
	l := &load{t: t}
	l.wait(idleSettle)
	before, err := n.CPU()
	require.NoError(t, err)
	l.wait(idleWindow)
	after, err := n.CPU()
	require.NoError(t, err)
	t.Logf("%d delayed jobs, %v of CPU in %v", jobs, after-before, idleWindow)
	// Ticks of CPU that the process used, which other processes do not add to.
	require.Less(t, after-before, idleWindow/100, "an idle node must use under 1%% of a core")
}

func TestMembersAgreeOnEveryNode(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	c.until(func() error { // a busy machine may elect another leader in between
		leader := c.leader()
		for _, n := range c.Nodes() {
			members, err := c.Members(t.Context(), n)
			if err != nil {
				return err
			}
			roles := map[string]string{}
			for _, m := range members {
				roles[m.ID] = m.Role
			}
			for _, other := range c.Nodes() {
				if (roles[other.ID] == "leader") != (other == leader) || roles[other.ID] == "" {
					return fmt.Errorf("%s leads, and the roles as node %s sees them are %v", leader.ID, n.ID, roles)
				}
			}
		}
		return nil
	})
	var health struct {
		Healthy          bool
		FailureTolerance int `json:"failure_tolerance"`
		Reasons          []string
	}
	c.until(func() error {
		if err := c.Get(t.Context(), c.leader(), "/v1/cluster/health", &health); err != nil {
			return err
		}
		if !health.Healthy {
			return fmt.Errorf("not healthy: %v", health.Reasons)
		}
		return nil
	})
	require.Equal(t, 1, health.FailureTolerance)
}

func TestCommandsSpeakToTheCluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	c.tarry("add", "--topic", "mail", "--id", "a", "hello")
	out := c.tarry("reserve", "--topic", "mail", "--wait", "20s", "--json")
	var j object
	require.NoError(t, json.Unmarshal([]byte(strings.TrimSpace(out)), &j), "%s", out)
	require.Equal(t, "a", j["id"])
	require.Equal(t, "hello", j["body"])
	c.tarry("finish", "a", "--token", j["token"].(string))
	require.Contains(t, c.tarry("cluster", "members"), "n3")
	require.NotContains(t, strings.ToLower(c.tarry("cluster", "verify")), "differ")

	to := c.follower()
	c.until(func() error {
		if _, err := c.tryTarry("cluster", "transfer-leadership", to.ID); err != nil {
			return err
		}
		if leader := c.leader(); leader != to {
			return fmt.Errorf("%s leads", leader.ID)
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, c.WaitReady(ctx, c.Nodes()...))
}
