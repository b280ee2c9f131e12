package ackguard

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePositionIsComparedWithTheAck(t *testing.T) {
	for name, c := range map[string]struct {
		has  position
		now  LogPosition
		says string
	}{
		"no ack":                        {position{}, LogPosition{}, ""},
		"all is there":                  {position{3, 90}, LogPosition{3, 90}, ""},
		"more is there":                 {position{3, 90}, LogPosition{3, 95}, ""},
		"only a term":                   {position{3, 0}, LogPosition{3, 10}, ""},
		"a later leader took some back": {position{3, 90}, LogPosition{4, 70}, ""},
		"the log is older":              {position{3, 90}, LogPosition{3, 89}, "entry 90 of term 3"},
		"the votes are older":           {position{3, 90}, LogPosition{2, 95}, "term 3"},
		"everything is lost":            {position{3, 90}, LogPosition{}, "term 3"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.now.checkRollback(c.has)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestAcksOnlyGrow(t *testing.T) {
	var a acks
	tell := func(term, index uint64) {
		a.merge("a.1", position{term, index})
		a.merge("", position{term: 9})
	}
	tell(2, 10)
	tell(2, 9)
	require.Equal(t, position{2, 10}, a.of("a.1"))
	tell(3, 0)
	tell(2, 11)
	require.Equal(t, position{3, 0}, a.of("a.1"))
	require.Empty(t, a.list(0, func(string) bool { return false }))
	require.Len(t, a.list(0, func(string) bool { return true }), 1, "only those with a name")
	for i := range 2 * maxAcks {
		a.merge(string(rune('A'+i)), position{term: 1})
	}
	require.Len(t, a.known, maxAcks)
}

// Several status calls are handled at a time, and each has acks.
func TestAnAckThatArrivesDuringACheckIsNoRollback(t *testing.T) {
	var a acks
	a.merge("n1.a", position{2, 2})
	last := uint64(2)
	now := func() LogPosition {
		before := LogPosition{Term: 2, LastIndex: last}
		last = 3 // stored, acknowledged, and merged before the ack is compared
		a.merge("n1.a", position{2, 3})
		return before
	}
	require.NoError(t, a.check("n1.a", now))
	last = 2
	require.Error(t, a.check("n1.a", func() LogPosition { return LogPosition{Term: 2, LastIndex: last} }), "it has lost entry 3")
}
