package ops

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/client"
	"tarry/cluster"
	condition "tarry/cluster/report"
	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
	"tarry/job"
)

// newOperators returns a shell whose cluster has n1 at the shell's own address and nobody at
// the others.
func newOperators(t *testing.T) *clitest.Shell {
	s := clitest.NewShellOf(t, opsRoot)
	s.Operator.HTTP = map[string]string{"n1": os.Getenv(cli.AddrEnv), "n2": clitest.FreeAddr(t)}
	return s
}

func TestTheVersionsOfACluster(t *testing.T) {
	s := newOperators(t)
	out := s.OK("cluster", "version")
	require.Regexp(t, `(?m)^n1 +v0.1.0 +0a1b2c3 +1 +1-2 +10 +5$`, out)
	require.Regexp(t, `(?m)^n2 +v0.1.0 +- +1 +1-2 +- +-$`, out)
	require.Regexp(t, `(?m)^n3 +- +- +- +- +- +-$`, out)
	require.Contains(t, out, "(this binary)")
	require.Contains(t, out, "cluster version: 1\nnext: version 2 waits for n3, which does not answer\n")
	require.Contains(t, s.OK("cluster", "version", "--json"), `"next_version":2`)

	code, _, errs := s.Run("cluster", "upgrade")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "needs --check")
	code, out, errs = s.Run("cluster", "upgrade", "--check", "--json")
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, out, `"ready":false`)
	require.Contains(t, errs, "not now: n3 is down")
}

func TestWhatIsInTheWayOfAnUpgrade(t *testing.T) {
	runs := job.ReleaseVersions()
	node := func(id string) nodeVersion {
		return nodeVersion{ID: id, Alive: true, Release: "v0", ClusterVersion: runs.Min, Min: runs.Min, Max: runs.Max, StoreFormat: cluster.StoreFormat, WireVersion: cluster.WireVersion, voter: true}
	}
	well := client.Health{Healthy: true, FailureTolerance: 1, ClusterVersion: runs.Min}
	for name, c := range map[string]struct {
		change func(r *versionReport, h *client.Health)
		says   []string
	}{
		"nothing": {func(*versionReport, *client.Health) {}, nil},
		"a node that is down": {func(r *versionReport, h *client.Health) {
			r.Nodes[2].Alive, h.FailureTolerance, h.Healthy, h.Reasons = false, 0, false, []string{"n3 is gone"}
		}, []string{"n3 is down", "the cluster is not healthy: n3 is gone", "no voter may be stopped now"}},
		"another wire version":                                  {func(r *versionReport, _ *client.Health) { r.Nodes[0].WireVersion-- }, []string{"they refuse each other"}},
		"another format of the state":                           {func(r *versionReport, _ *client.Health) { r.Nodes[0].StoreFormat-- }, []string{"opens only format"}},
		"a version of the cluster that the binary does not run": {func(r *versionReport, _ *client.Health) { r.ClusterVersion = runs.Max + 1 }, []string{"this binary runs only"}},
		"an older node says less":                               {func(r *versionReport, _ *client.Health) { r.Nodes[0].StoreFormat, r.Nodes[0].WireVersion = 0, 0 }, nil},
	} {
		r := versionReport{ClusterVersion: runs.Min, Nodes: []nodeVersion{node("n1"), node("n2"), node("n3")}, Binary: binaryVersion()}
		h := well
		c.change(&r, &h)
		got := blockersOf(&r, &h)
		require.Len(t, got, len(c.says), "%s: %v", name, got)
		for i, says := range c.says {
			require.Contains(t, got[i], says, name)
		}
	}
	r := versionReport{ClusterVersion: 1, NextVersion: 2}
	require.Contains(t, r.next(), "raises it to 2")
	r.NextVersion = 0
	require.Contains(t, r.next(), "none")
}

func TestDrainFromTheCommandLine(t *testing.T) {
	s := newOperators(t)
	s.Operator.Change = func(list []*condition.Member) []*condition.Member { list[2].Alive = true; return list }
	require.Contains(t, s.OK("cluster", "drain", "n1", "--dry-run"), "nothing was done: n1 would be drained, and leadership would move")
	require.Empty(t, s.Operator.Calls())
	require.Contains(t, s.OK("cluster", "drain", "n1"), "n1 is drained: it does not lead and is not ready. It can be stopped")
	s.Operator.Change = func(list []*condition.Member) []*condition.Member { list[1].Draining = true; return list }
	require.Contains(t, s.OK("cluster", "members"), "follower, drained")
	require.Contains(t, s.OK("cluster", "members", "--json"), `"draining":true`)
	require.JSONEq(t, `{"node":"n1","draining":false}`, s.OK("cluster", "drain", "--undo", "--json"))
	require.Equal(t, []string{"drain true", "drain false"}, s.Operator.Calls())
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"cluster drain n9": {cli.ExitNotFound, "not a member"},
		"cluster drain n3": {cli.ExitFailed, "the HTTP address of n3 is not known"},
	} {
		code, _, errs := s.Run(append(strings.Fields(args), "--patience", "0s")...)
		require.Equal(t, want.code, code, "%s: %s", args, errs)
		require.Contains(t, errs, want.says)
	}
	s.Operator.Err = job.Errorf(job.CodeConflict, "n1 is the only voter")
	require.Contains(t, drainPlan(nil, client.NodeInfo{ID: "n1"}, true, ""), "n1 is not drained")
}

// "It can be stopped" must be true.
func TestADrainIsRefusedWhereTheMajorityWouldGo(t *testing.T) {
	s := newOperators(t)
	s.Operator.Change = func(list []*condition.Member) []*condition.Member { list[2].Alive = false; return list }
	const loss = "stopping n1 would leave 1 of 3 voters that serve, which is no majority: n3 is down"
	code, _, errs := s.Run("cluster", "drain", "n1")
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, loss+". Nothing was done; --force drains it nevertheless")
	require.Contains(t, s.OK("cluster", "drain", "n1", "--dry-run"), "it needs --force: "+loss)
	require.Empty(t, s.Operator.Calls())
	require.Contains(t, s.OK("cluster", "drain", "n1", "--force"), "Do not stop it yet: "+loss)
	require.Contains(t, s.OK("cluster", "drain", "n1", "--undo"), "may lead")

	voter := func(id string, alive, drained bool) client.Member {
		return client.Member{ID: id, Voter: true, Alive: alive, Draining: drained}
	}
	for name, c := range map[string]struct {
		members []client.Member
		says    string
	}{
		"all serve":        {[]client.Member{voter("n1", true, false), voter("n2", true, false), voter("n3", true, false)}, ""},
		"one is drained":   {[]client.Member{voter("n1", true, false), voter("n2", true, true), voter("n3", true, false)}, "n2 is drained"},
		"five, one down":   {[]client.Member{voter("n1", true, false), voter("n2", false, false), voter("n3", true, false), voter("n4", true, false), voter("n5", true, false)}, ""},
		"two":              {[]client.Member{voter("n1", true, false), voter("n2", true, false)}, "1 of 2 voters"},
		"the only one":     {[]client.Member{voter("n1", true, false), {ID: "n2", Alive: true}}, ""},
		"it does not vote": {[]client.Member{{ID: "n1", Alive: true}, voter("n2", true, false), voter("n3", false, false)}, ""},
	} {
		if got := majorityLoss(c.members, "n1"); c.says == "" {
			require.Empty(t, got, name)
		} else {
			require.Contains(t, got, c.says, name)
		}
	}
}

func TestEventsFromTheCommandLine(t *testing.T) {
	s := newOperators(t)
	out := s.OK("cluster", "events")
	require.Regexp(t, `(?m)^2023-11-14T22:13:20.000Z +n1 +leader +info +leader changed +leader=n1$`, out)
	require.Regexp(t, `(?m)n1 +member +warn +member has stopped or cannot be reached +address=host3:7301 member=n3$`, out)
	require.NotContains(t, s.OK("cluster", "events", "--kind", "member"), "leader changed")
	code, _, errs := s.Run("cluster", "events", "--kind", "disks")
	require.Equal(t, cli.ExitUsage, code, "it would look like a cluster to which nothing happened")
	require.Contains(t, errs, `--kind is "disks"; it takes member, leader`)
	require.Contains(t, s.OK("cluster", "events", "--json"), `"node":"n1","number":1,"at":"2023-11-14T22:13:20Z"`)

	code, out, errs = s.Run("cluster", "events", "--all")
	require.Equal(t, cli.ExitOK, code)
	require.Contains(t, out, "leader changed")
	require.Contains(t, errs, s.Operator.HTTP["n2"], "who did not answer is named")
	code, _, _ = s.Run("cluster", "events", "--addr", s.Operator.HTTP["n2"])
	require.NotEqual(t, cli.ExitOK, code)
}

func TestReplaceWaitsUntilTheNewNodeVotesAndRemovesTheOldOne(t *testing.T) {
	s := newOperators(t)
	looks := 0
	s.Operator.Change = func(list []*condition.Member) []*condition.Member {
		looks++
		added := &condition.Member{Id: "n4", Address: "host4:7301", Role: "follower", Alive: true, Lag: 5000}
		switch {
		case looks < 3:
			return list // it has not been started
		case looks >= 4:
			added.Voter, added.Lag = looks > 4, 3
		}
		list = append(list, added)
		if len(s.Operator.Calls()) > 0 {
			list = slices.DeleteFunc(list, func(m *condition.Member) bool { return m.Id == "n2" })
		}
		return list
	}
	require.Contains(t, s.OK("cluster", "replace", "n2", "n4", "--dry-run"), "nothing was done: n4 is not a member: start it")
	code, _, errs := s.Run("cluster", "replace", "n2", "n4")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "say --yes")
	require.Empty(t, s.Operator.Calls())

	code, out, errs := s.Run("cluster", "replace", "n2", "n4", "--yes")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Equal(t, "n4 has replaced n2: n4 votes, and n2 is not a member\n", out)
	require.Contains(t, errs, "n4 has joined and does not vote yet; it is 3 log entries behind")
	require.Contains(t, errs, "n4 votes, and n2 can be removed")
	require.Equal(t, []string{"remove n2"}, s.Operator.Calls())

	require.JSONEq(t, `{"old":"n2","new":"n4","done":true,"state":"n4 votes, and n2 is not a member"}`, s.OK("cluster", "replace", "n2", "n4", "--json"), "again does nothing")
	require.Len(t, s.Operator.Calls(), 1)
}

func TestHealthWarnsOfTwoVoters(t *testing.T) {
	s := newOperators(t)
	_, out, _ := s.Run("cluster", "health")
	require.NotContains(t, out, "two nodes vote")
	s.Operator.Problems = []*condition.Problem{condition.NewProblem(condition.TwoVoters, "", "two nodes vote")}
	code, out, _ := s.Run("cluster", "health")
	require.Equal(t, cli.ExitOK, code)
	require.Contains(t, out, "healthy: yes")
	require.Contains(t, out, "warning: two nodes vote")
	require.Contains(t, s.OK("cluster", "health", "--json"), `"kind":"two_voters"`)
}

// A cluster may be ready for a release that runs a higher version, though no node runs it yet.
func TestTheNextVersionDoesNotContradictTheCheck(t *testing.T) {
	r := versionReport{ClusterVersion: 1, Binary: nodeVersion{Max: 2}}
	require.Equal(t, "none with the releases that the nodes run; this binary runs up to 2", r.next())
	r.Binary.Max = 1
	require.Equal(t, "none; no node runs a higher version", r.next())
}

func TestAReplacementThatCannotBe(t *testing.T) {
	s := newOperators(t)
	code, _, errs := s.Run("cluster", "replace", "n2", "n2")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "OLD and NEW are both n2")
	code, _, errs = s.Run("cluster", "replace", "n8", "n9", "-y")
	require.Equal(t, cli.ExitNotFound, code)
	require.Contains(t, errs, "neither n8 nor n9 is a member")
	code, _, errs = s.Run("cluster", "replace", "n2", "n3", "-y", "--wait", "1ms")
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "removed nothing: n3 is a member, and does not reply")
	code, _, errs = s.Run("cluster", "replace", "n2", "n9", "-y", "--wait", "1ms")
	require.Equal(t, cli.ExitNotFound, code)
	require.Contains(t, errs, "n9 has not become a member within 1ms, and nothing was removed: no node with this name is known")
	require.Empty(t, s.Operator.Calls())
}

func TestAReplacementThatWouldOnlyShrinkTheCluster(t *testing.T) {
	s := newOperators(t)
	s.Operator.Change = func(list []*condition.Member) []*condition.Member {
		return append(list, &condition.Member{Id: "n4", Address: "host4:7301", Role: "follower", Alive: true})
	}
	for args, says := range map[string]string{
		"cluster replace n2 n1": "without n2 there are 2 voters instead of 3, of which 0 may fail instead of 1",
		"cluster replace n4 n2": "n2 votes and n4 does not: perhaps the two are swapped",
	} {
		code, _, errs := s.Run(append(strings.Fields(args), "--yes")...)
		require.Equal(t, cli.ExitFailed, code)
		require.Contains(t, errs, says)
		require.Empty(t, s.Operator.Calls())
		dry := append(strings.Fields(args), "--dry-run")
		require.Contains(t, s.OK(dry...), "nothing would be without --force: ", "a dry run says that it would be refused")
		require.Contains(t, s.OK(append(dry, "--json")...), says)
		require.NotContains(t, s.OK(append(dry, "--force")...), "without --force")
	}
	require.Contains(t, s.OK("cluster", "replace", "n3", "n1", "--dry-run"), "n3 can be removed", "it is down")

	for remain, fail := range []int{0, 0, 0, 1, 1, 2} {
		require.Equal(t, fail, mayFail(remain))
	}
	r := replacement{old: "n2", new: "n4"}
	voter := func(id string) client.Member { return client.Member{ID: id, Voter: true, Alive: true} }
	step, err := r.stepOf([]client.Member{voter("n1"), voter("n2"), voter("n3"), voter("n4")})
	require.NoError(t, err)
	require.Empty(t, step.Shrinks, "four voters become three")
}

func TestAReplacementOutlivesAnElection(t *testing.T) {
	require.True(t, passes(&client.Error{Code: client.CodeNotApplied}))
	require.True(t, passes(&client.Error{Status: 503}))
	require.False(t, passes(&client.Error{Code: client.CodeForbidden, Status: 403}))
	require.False(t, passes(errInterrupted))
}

func TestShrinkingToOneVoterSaysWhatThatMeans(t *testing.T) {
	s := newOperators(t)
	s.Operator.Change = func(list []*condition.Member) []*condition.Member { return list[:2] }
	for line, says := range map[string]string{
		"cluster remove n2": "n1 will be the only voter: if its disk is lost",
		"cluster leave":     "n2 will be the only voter",
	} {
		code, _, errs := s.Answer("n\n", strings.Fields(line)...)
		require.Equal(t, cli.ExitUsage, code)
		require.Contains(t, errs, says)
		require.Empty(t, s.Operator.Calls())
	}
}

func TestTheDryRunOfATransfer(t *testing.T) {
	s := newOperators(t)
	for id, says := range map[string]string{
		"": "leadership would move from n1 to the best follower", "n1": "n1 leads already", "n2": "leadership would move from n1 to n2", "n3": "n3 is not alive",
	} {
		require.Contains(t, s.OK(append([]string{"cluster", "transfer-leadership", "--dry-run"}, strings.Fields(id)...)...), says)
	}
	require.JSONEq(t, `{"dry_run":true,"plan":"n1 leads already"}`, s.OK("cluster", "transfer-leadership", "n1", "--dry-run", "--json"))
	code, _, errs := s.Run("cluster", "transfer-leadership", "n9", "--dry-run")
	require.Equal(t, cli.ExitNotFound, code, errs)
	require.Empty(t, s.Operator.Calls())
	require.Contains(t, transferPlan([]client.Member{{ID: "n1", Role: "leader", Voter: true}}, client.Member{}), "no other voter is alive")
	require.Contains(t, transferPlan(nil, client.Member{ID: "n4"}), "does not vote")
	require.Contains(t, transferPlan(nil, client.Member{ID: "n2", Voter: true, Alive: true, Draining: true}), "gives it away again")
}
