package membership

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

func configurationOf(servers ...raft.Server) raft.Configuration {
	return raft.Configuration{Servers: servers}
}

func TestAGroupFollowsTheConfigurationOfGroupZero(t *testing.T) {
	voter := func(id, addr string) raft.Server {
		return raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(addr)}
	}
	joins := func(id, addr string) raft.Server {
		return raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(addr), Suffrage: raft.Nonvoter}
	}
	yes, no := func(raft.ServerID) bool { return true }, func(raft.ServerID) bool { return false }
	for name, c := range map[string]struct {
		want, have raft.Configuration
		caughtUp   func(raft.ServerID) bool
		changes    []memberChange
	}{
		"nothing changed": {configurationOf(voter("a", "1"), voter("b", "2")), configurationOf(voter("b", "2"), voter("a", "1")), yes, nil},
		"one joins":       {configurationOf(voter("a", "1"), joins("b", "2")), configurationOf(voter("a", "1")), yes, []memberChange{{adds, joins("b", "2")}}},
		"it is added before it votes, though it votes in group 0": {
			configurationOf(voter("a", "1"), voter("b", "2")), configurationOf(voter("a", "1")), no, []memberChange{{adds, voter("b", "2")}}},
		"it votes once it has caught up": {
			configurationOf(voter("a", "1"), voter("b", "2")), configurationOf(voter("a", "1"), joins("b", "2")), yes, []memberChange{{promotes, voter("b", "2")}}},
		"not before": {configurationOf(voter("a", "1"), voter("b", "2")), configurationOf(voter("a", "1"), joins("b", "2")), no, nil},
		"and not while it does not vote in group 0": {
			configurationOf(voter("a", "1"), joins("b", "2")), configurationOf(voter("a", "1"), joins("b", "2")), yes, nil},
		"one moves": {configurationOf(voter("a", "1"), voter("b", "3")), configurationOf(voter("a", "1"), voter("b", "2")), yes, []memberChange{{moves, voter("b", "3")}}},
		"one leaves before another takes its address": {
			configurationOf(voter("a", "1"), joins("c", "2")), configurationOf(voter("a", "1"), voter("b", "2")), yes,
			[]memberChange{{removes, voter("b", "2")}, {adds, joins("c", "2")}}},
		"group 0 is not known yet":    {configurationOf(), configurationOf(voter("a", "1")), yes, nil},
		"the group has not begun yet": {configurationOf(voter("a", "1")), configurationOf(), yes, nil},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.changes, changesTo(c.want, c.have, c.caughtUp)) })
	}
}
