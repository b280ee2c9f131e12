package configlog

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/testseed"
)

var (
	exploreStates = flag.Int("configlog.states", 10_000, "explore so many states of each configuration at most")
	exploreRandom = flag.Int("configlog.random", 5_000, "and make so many steps of random runs")
)

// models are the configurations: which changes a client makes, and what else happens.
var models = []model{
	{name: "order", calls: []uint8{setTopic, weakenToken}, level: 2, groups: 2, budget: budget{configLeaders: 1, leaders: 1, ops: 1}},
	{name: "leaders", calls: []uint8{revokeToken}, level: 2, groups: 1, budget: budget{configLeaders: 1, leaders: 2, losses: 1, ops: 1, retries: 1, lagReplies: 1}},
	{name: "time", calls: []uint8{revokeToken}, level: 2, groups: 1, budget: budget{configLeaders: 1, leaders: 1, ticks: 3, ops: 1, lagReplies: 1}},
	{name: "skew", calls: []uint8{revokeToken}, level: 2, groups: 1, skew: 2, budget: budget{leaders: 1, ticks: 4, ops: 1}},
	{name: "put", calls: []uint8{putToken, revokeToken}, groups: 1, budget: budget{configLeaders: 1, leaders: 1, ticks: 1, ops: 1, retries: 1}},
	{name: "fresh", calls: []uint8{putToken}, fresh: true, groups: 2, budget: budget{leaders: 1, ops: 1, lagReplies: 1}},
	{name: "replace", calls: []uint8{setTopic, revokeToken}, level: 2, groups: 1, budget: budget{configLeaders: 1, leaders: 1, replacements: 2, ops: 1}},
	{name: "replace-jobs", calls: []uint8{revokeToken}, level: 2, groups: 1, budget: budget{leaders: 1, dataReplacements: 1, ticks: 1, ops: 1, lagReplies: 1}},
	{name: "recover-config", calls: []uint8{revokeToken}, level: 2, groups: 1, budget: budget{configLeaders: 1, leaders: 1, recoveries: 1, ticks: 2, ops: 1}},
	{name: "recover-group", calls: []uint8{revokeToken}, level: 2, groups: 1, budget: budget{leaders: 1, dataRecovers: 1, ticks: 2, ops: 1, losses: 1}},
	{name: "clock", calls: []uint8{revokeToken}, level: 2, groups: 1, budget: budget{clockResets: 1, ticks: 4, ops: 1}},
	{name: "compact", calls: []uint8{setTopic, setTopic, revokeToken}, level: 2, groups: 1, compact: true, budget: budget{leaders: 1, ops: 1}},
	{name: "fence", calls: []uint8{revokeToken}, level: 2, groups: 1, budget: budget{ticks: 2, ops: 1}},
	{name: "back", calls: []uint8{revokeToken}, level: 2, groups: 1, budget: budget{replacements: 1, ops: 1}},
	{name: "deposed", calls: []uint8{revokeToken}, level: 2, groups: 1, budget: budget{configLeaders: 1, ticks: 2, ops: 1}},
	{name: "terms", calls: []uint8{revokeToken}, level: 2, groups: 1, skew: 1, budget: budget{leaders: 1, ticks: 2, ops: 1}},
	{name: "two", calls: []uint8{revokeToken}, level: 2, groups: 2, budget: budget{leaders: 1, ticks: 1, ops: 1, lagReplies: 1, retries: 1}},
}

// variants are wrong protocols, each with a configuration in which the explorer finds it.
var variants = []struct{ wrong, in, why string }{
	{"nocompare", "leaders", "changes that are there are applied again"},
	{"uncommitted", "order", "the leader reads the config group's log, not its state"},
	{"epochignored", "replace", "a new history is taken for the old one"},
	{"oldepoch", "back", "a group goes back"},
	{"unconfirmed", "replace", "the leader reads what may be lost"},
	{"oldleader", "deposed", "a deposed leader confirms"},
	{"heardonarrival", "time", "the lease counts from the answer"},
	{"heardbehind", "fence", "the lease counts without the changes"},
	{"nolease", "time", "what a group has counts for ever"},
	{"anyterm", "terms", "the lease counts by the clock of another leader"},
	{"failopen", "fresh", "a group without config accepts everything"},
	{"decidedearly", "fence", "an operation is decided when it is proposed"},
	{"reportproposed", "leaders", "a position is reported before it is committed"},
	{"reportonce", "leaders", "a report that is lost is not repeated"},
	{"onegroup", "order", "a call returns when one group has the change"},
	{"leasefence", "fence", "a call returns when the lease of a group is over"},
	{"repeatatonce", "leaders", "a call that changes nothing does not wait"},
	{"replaceconfig", "replace-jobs", "a backup brings a token back"},
	{"leasekept", "recover-group", "a recovered group is still in touch"},
	{"oldanswer", "recover-group", "so are its answers"},
	{"clockback", "clock", "a reset of the clock lengthens the lease"},
	{"ownstays", "leaders", "a new leader waits for a proposal that is lost"},
	{"onlynotified", "leaders", "a leader follows only the changes that it was notified of"},
	{"mixedparts", "compact", "parts of two configs are joined"},
	{"partinforce", "compact", "a config is in force with its first part"},
}

func modelOf(t *testing.T, name string) model {
	for _, m := range models {
		if m.name == name {
			return m
		}
	}
	require.Failf(t, "no such configuration", "%q", name)
	return model{}
}

func TestProtocolHoldsInAllOrdersOfEvents(t *testing.T) {
	for _, m := range models {
		t.Run(m.name, func(t *testing.T) {
			f := m.breadth(*exploreStates)
			t.Log(f.String())
			require.Empty(t, f.problem, f.String())
			require.False(t, m.endless(*exploreStates), "a run without an end")
			f = m.random(*exploreRandom, testseed.New())
			require.Empty(t, f.problem, f.String())
		})
	}
}

func TestWrongProtocolsAreFound(t *testing.T) {
	for _, v := range variants {
		t.Run(v.wrong, func(t *testing.T) {
			m := modelOf(t, v.in)
			m.wrong = v.wrong
			f := m.breadth(2_000_000)
			t.Logf("%s: %s", v.why, f.String())
			require.NotEmpty(t, f.problem, "in which %s", v.why)
		})
	}
}
