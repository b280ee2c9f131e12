package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/client"
	"tarry/cluster"
	condition "tarry/cluster/report"
	"tarry/job"
)

// newOperators returns a shell whose cluster has n1 at the shell's own address and nobody at
// the others.
func newOperators(t *testing.T) *shell {
	s := newShell(t)
	s.operator.HTTP = map[string]string{"n1": os.Getenv(addrEnv), "n2": freeAddr(t)}
	return s
}

func TestTheVersionsOfACluster(t *testing.T) {
	s := newOperators(t)
	out := s.ok("cluster", "version")
	require.Regexp(t, `(?m)^n1 +v0.1.0 +0a1b2c3 +1 +1-2 +10 +5$`, out)
	require.Regexp(t, `(?m)^n2 +v0.1.0 +- +1 +1-2 +- +-$`, out)
	require.Regexp(t, `(?m)^n3 +- +- +- +- +- +-$`, out)
	require.Contains(t, out, "(this binary)")
	require.Contains(t, out, "cluster version: 1\nnext: version 2 waits for n3, which does not answer\n")
	require.Contains(t, s.ok("cluster", "version", "--json"), `"next_version":2`)

	code, _, errs := s.run("cluster", "upgrade")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "needs --check")
	code, out, errs = s.run("cluster", "upgrade", "--check", "--json")
	require.Equal(t, exitFailed, code)
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
	s.operator.Change = func(list []*condition.Member) []*condition.Member { list[2].Alive = true; return list }
	require.Contains(t, s.ok("cluster", "drain", "n1", "--dry-run"), "nothing was done: n1 would be drained, and leadership would move")
	require.Empty(t, s.operator.Calls())
	require.Contains(t, s.ok("cluster", "drain", "n1"), "n1 is drained: it does not lead and is not ready. It can be stopped")
	s.operator.Change = func(list []*condition.Member) []*condition.Member { list[1].Draining = true; return list }
	require.Contains(t, s.ok("cluster", "members"), "follower, drained")
	require.Contains(t, s.ok("cluster", "members", "--json"), `"draining":true`)
	require.JSONEq(t, `{"node":"n1","draining":false}`, s.ok("cluster", "drain", "--undo", "--json"))
	require.Equal(t, []string{"drain true", "drain false"}, s.operator.Calls())
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"cluster drain n9": {exitNotFound, "not a member"},
		"cluster drain n3": {exitFailed, "the HTTP address of n3 is not known"},
	} {
		code, _, errs := s.run(append(strings.Fields(args), "--patience", "0s")...)
		require.Equal(t, want.code, code, "%s: %s", args, errs)
		require.Contains(t, errs, want.says)
	}
	s.operator.Err = job.Errorf(job.CodeConflict, "n1 is the only voter")
	require.Contains(t, drainPlan(nil, client.NodeInfo{ID: "n1"}, true, ""), "n1 is not drained")
}

// "It can be stopped" must be true.
func TestADrainIsRefusedWhereTheMajorityWouldGo(t *testing.T) {
	s := newOperators(t)
	s.operator.Change = func(list []*condition.Member) []*condition.Member { list[2].Alive = false; return list }
	const loss = "stopping n1 would leave 1 of 3 voters that serve, which is no majority: n3 is down"
	code, _, errs := s.run("cluster", "drain", "n1")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, loss+". Nothing was done; --force drains it nevertheless")
	require.Contains(t, s.ok("cluster", "drain", "n1", "--dry-run"), "it needs --force: "+loss)
	require.Empty(t, s.operator.Calls())
	require.Contains(t, s.ok("cluster", "drain", "n1", "--force"), "Do not stop it yet: "+loss)
	require.Contains(t, s.ok("cluster", "drain", "n1", "--undo"), "may lead")

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
	out := s.ok("cluster", "events")
	require.Regexp(t, `(?m)^2023-11-14T22:13:20.000Z +n1 +leader +info +leader changed +leader=n1$`, out)
	require.Regexp(t, `(?m)n1 +member +warn +member has stopped or cannot be reached +address=host3:7301 member=n3$`, out)
	require.NotContains(t, s.ok("cluster", "events", "--kind", "member"), "leader changed")
	code, _, errs := s.run("cluster", "events", "--kind", "disks")
	require.Equal(t, exitUsage, code, "it would look like a cluster to which nothing happened")
	require.Contains(t, errs, `--kind is "disks"; it takes member, leader`)
	require.Contains(t, s.ok("cluster", "events", "--json"), `"node":"n1","number":1,"at":"2023-11-14T22:13:20Z"`)

	code, out, errs = s.run("cluster", "events", "--all")
	require.Equal(t, exitOK, code)
	require.Contains(t, out, "leader changed")
	require.Contains(t, errs, s.operator.HTTP["n2"], "who did not answer is named")
	code, _, _ = s.run("cluster", "events", "--addr", s.operator.HTTP["n2"])
	require.NotEqual(t, exitOK, code)
}

func TestSettingsAreShownWithoutSecrets(t *testing.T) {
	c, err := parseServerConfig([]string{"--push-allow", "hooks.example", "--otlp-endpoint", "http://127.0.0.1:4318", "--join", "a:1"}, noEnv)
	require.NoError(t, err)
	shown := map[string]job.NodeSetting{}
	for _, v := range c.settings {
		require.NotContains(t, v.Value, "geheim")
		shown[v.Name] = v
	}
	require.Equal(t, job.NodeSetting{Name: "push-allow", Hidden: true}, shown["push-allow"])
	require.Equal(t, job.NodeSetting{Name: "cors-origins"}, shown["cors-origins"], "not set")
	require.Equal(t, "a:1", shown["join"].Value)
	require.Equal(t, "0", shown["bootstrap-expect"].Value)
	require.Equal(t, "http://127.0.0.1:4318", shown["otlp-endpoint"].Value)
	require.Equal(t, "http://127.0.0.1:4318/v1", withoutSecrets("http://ann:geheim@127.0.0.1:4318/v1?key=geheim#geheim"))
}

func TestReplaceWaitsUntilTheNewNodeVotesAndRemovesTheOldOne(t *testing.T) {
	s := newOperators(t)
	looks := 0
	s.operator.Change = func(list []*condition.Member) []*condition.Member {
		looks++
		added := &condition.Member{Id: "n4", Address: "host4:7301", Role: "follower", Alive: true, Lag: 5000}
		switch {
		case looks < 3:
			return list // it has not been started
		case looks >= 4:
			added.Voter, added.Lag = looks > 4, 3
		}
		list = append(list, added)
		if len(s.operator.Calls()) > 0 {
			list = slices.DeleteFunc(list, func(m *condition.Member) bool { return m.Id == "n2" })
		}
		return list
	}
	require.Contains(t, s.ok("cluster", "replace", "n2", "n4", "--dry-run"), "nothing was done: n4 is not a member: start it")
	code, _, errs := s.run("cluster", "replace", "n2", "n4")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "say --yes")
	require.Empty(t, s.operator.Calls())

	code, out, errs := s.run("cluster", "replace", "n2", "n4", "--yes")
	require.Equal(t, exitOK, code, errs)
	require.Equal(t, "n4 has replaced n2: n4 votes, and n2 is not a member\n", out)
	require.Contains(t, errs, "n4 has joined and does not vote yet; it is 3 log entries behind")
	require.Contains(t, errs, "n4 votes, and n2 can be removed")
	require.Equal(t, []string{"remove n2"}, s.operator.Calls())

	require.JSONEq(t, `{"old":"n2","new":"n4","done":true,"state":"n4 votes, and n2 is not a member"}`, s.ok("cluster", "replace", "n2", "n4", "--json"), "again does nothing")
	require.Len(t, s.operator.Calls(), 1)
}

func TestHealthWarnsOfTwoVoters(t *testing.T) {
	s := newOperators(t)
	_, out, _ := s.run("cluster", "health")
	require.NotContains(t, out, "two nodes vote")
	s.operator.Problems = []*condition.Problem{condition.NewProblem(condition.TwoVoters, "", "two nodes vote")}
	code, out, _ := s.run("cluster", "health")
	require.Equal(t, exitOK, code)
	require.Contains(t, out, "healthy: yes")
	require.Contains(t, out, "warning: two nodes vote")
	require.Contains(t, s.ok("cluster", "health", "--json"), `"kind":"two_voters"`)
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
	code, _, errs := s.run("cluster", "replace", "n2", "n2")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "OLD and NEW are both n2")
	code, _, errs = s.run("cluster", "replace", "n8", "n9", "-y")
	require.Equal(t, exitNotFound, code)
	require.Contains(t, errs, "neither n8 nor n9 is a member")
	code, _, errs = s.run("cluster", "replace", "n2", "n3", "-y", "--wait", "1ms")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "removed nothing: n3 is a member, and does not reply")
	code, _, errs = s.run("cluster", "replace", "n2", "n9", "-y", "--wait", "1ms")
	require.Equal(t, exitNotFound, code)
	require.Contains(t, errs, "n9 has not become a member within 1ms, and nothing was removed: no node with this name is known")
	require.Empty(t, s.operator.Calls())
}

func TestAReplacementThatWouldOnlyShrinkTheCluster(t *testing.T) {
	s := newOperators(t)
	s.operator.Change = func(list []*condition.Member) []*condition.Member {
		return append(list, &condition.Member{Id: "n4", Address: "host4:7301", Role: "follower", Alive: true})
	}
	for args, says := range map[string]string{
		"cluster replace n2 n1": "without n2 there are 2 voters instead of 3, of which 0 may fail instead of 1",
		"cluster replace n4 n2": "n2 votes and n4 does not: perhaps the two are swapped",
	} {
		code, _, errs := s.run(append(strings.Fields(args), "--yes")...)
		require.Equal(t, exitFailed, code)
		require.Contains(t, errs, says)
		require.Empty(t, s.operator.Calls())
		dry := append(strings.Fields(args), "--dry-run")
		require.Contains(t, s.ok(dry...), "nothing would be without --force: ", "a dry run says that it would be refused")
		require.Contains(t, s.ok(append(dry, "--json")...), says)
		require.NotContains(t, s.ok(append(dry, "--force")...), "without --force")
	}
	require.Contains(t, s.ok("cluster", "replace", "n3", "n1", "--dry-run"), "n3 can be removed", "it is down")

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

func TestRawRequestsSendTheToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("word\n"), 0o600))
	token := clientToken{file: file}
	q, err := http.NewRequest(http.MethodGet, "http://127.0.0.1:7300/metrics", nil)
	require.NoError(t, err)
	require.NoError(t, token.sign(q))
	require.Equal(t, "Bearer word", q.Header.Get("Authorization"))
	q, err = http.NewRequest(http.MethodGet, "http://queue.example:7300/metrics", nil)
	require.NoError(t, err)
	require.ErrorContains(t, token.sign(q), "without TLS")
	require.Empty(t, q.Header)
}

func TestShrinkingToOneVoterSaysWhatThatMeans(t *testing.T) {
	s := newOperators(t)
	s.operator.Change = func(list []*condition.Member) []*condition.Member { return list[:2] }
	for line, says := range map[string]string{
		"cluster remove n2": "n1 will be the only voter: if its disk is lost",
		"cluster leave":     "n2 will be the only voter",
	} {
		code, _, errs := s.answer("n\n", strings.Fields(line)...)
		require.Equal(t, exitUsage, code)
		require.Contains(t, errs, says)
		require.Empty(t, s.operator.Calls())
	}
}

func TestTheDryRunOfATransfer(t *testing.T) {
	s := newOperators(t)
	for id, says := range map[string]string{
		"": "leadership would move from n1 to the best follower", "n1": "n1 leads already", "n2": "leadership would move from n1 to n2", "n3": "n3 is not alive",
	} {
		require.Contains(t, s.ok(append([]string{"cluster", "transfer-leadership", "--dry-run"}, strings.Fields(id)...)...), says)
	}
	require.JSONEq(t, `{"dry_run":true,"plan":"n1 leads already"}`, s.ok("cluster", "transfer-leadership", "n1", "--dry-run", "--json"))
	code, _, errs := s.run("cluster", "transfer-leadership", "n9", "--dry-run")
	require.Equal(t, exitNotFound, code, errs)
	require.Empty(t, s.operator.Calls())
	require.Contains(t, transferPlan([]client.Member{{ID: "n1", Role: "leader", Voter: true}}, client.Member{}), "no other voter is alive")
	require.Contains(t, transferPlan(nil, client.Member{ID: "n4"}), "does not vote")
	require.Contains(t, transferPlan(nil, client.Member{ID: "n2", Voter: true, Alive: true, Draining: true}), "gives it away again")
}
