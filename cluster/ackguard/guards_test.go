package ackguard

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

// Group 2 has acknowledged more than group 1: taken for one another, a node would end for nothing.
func TestEachGroupTakesItsOwnAcks(t *testing.T) {
	var both Guards
	for group := range uint32(2) {
		both = append(both, New(Config{ServerID: "n1.a", Group: group, Logger: slog.New(slog.DiscardHandler)}))
	}
	both.Merge([]Ack{{Group: 1, ServerID: "n1.a", Term: 7, Index: 70}, {Group: 0, ServerID: "n2.a", Term: 2}, {Group: 9, ServerID: "n1.a", Term: 9}})
	require.NoError(t, both[0].Check(LogPosition{}))
	require.Error(t, both[1].Check(LogPosition{Term: 7, LastIndex: 69}))
	require.NoError(t, both[1].Check(LogPosition{Term: 7, LastIndex: 70}))
	require.Equal(t, []Ack{{Group: 1, ServerID: "n1.a", Term: 7, Index: 70}}, both.Of("n1.a"))
	require.Equal(t, []Ack{{ServerID: "n2.a", Term: 2}}, both.Of("n2.a"))
}
