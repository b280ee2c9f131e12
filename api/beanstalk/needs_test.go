package beanstalk

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A command that nobody has thought about cannot be sent by anybody.
func TestEveryCommandSaysWhoMaySendIt(t *testing.T) {
	known := map[verb]bool{}
	for _, w := range words {
		known[w.verb] = true
	}
	open := map[verb]bool{unknown: true, authenticate: true, quit: true}
	for v := range verbs {
		n := needs[v]
		require.True(t, known[v] || v == unknown, "command %d has no word", v)
		require.NotEqual(t, nobody, n.on, names[v])
		require.Equal(t, open[v], n.on == everybody, names[v])
		require.Equal(t, open[v] || n.on == onConnection, n.verbs == 0, names[v])
	}
}
