package configlog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func at(epoch, number uint64) Position { return Position{Epoch: epoch, Number: number} }

func TestChangesAreTakenOnceAndWithoutAGap(t *testing.T) {
	for name, c := range map[string]struct {
		after Position
		n     int
		skip  int
		ok    bool
		then  Position
	}{
		"the next":            {at(2, 5), 3, 0, true, at(2, 8)},
		"some are there":      {at(2, 3), 4, 2, true, at(2, 7)},
		"all are there":       {at(2, 1), 2, 2, true, at(2, 5)},
		"a gap":               {at(2, 6), 1, 0, false, at(2, 5)},
		"of an older history": {at(1, 5), 1, 0, false, at(2, 5)},
		"of a newer history":  {at(3, 0), 1, 0, false, at(2, 5)},
	} {
		t.Run(name, func(t *testing.T) {
			g := Group{Position: at(2, 5)}
			skip, ok := g.Changes(c.after, c.n)
			require.Equal(t, c.ok, ok)
			require.Equal(t, c.skip, skip)
			require.Equal(t, c.then, g.Position)
		})
	}
}

func TestAWholeConfigIsInForceWithItsLastPart(t *testing.T) {
	g := Group{Position: at(1, 5), Heard: Heard{Term: 1, AskedMS: 100}}
	require.True(t, g.Accepts(1, 100))
	require.False(t, g.Part(Part{At: at(2, 1), From: "b", Next: "c"}), "the first part is missing")
	require.True(t, g.Part(Part{At: at(2, 1), Next: "b"}))
	require.False(t, g.Accepts(1, 100), "the config is a mixture")
	_, ok := g.Changes(at(1, 5), 1)
	require.False(t, ok)
	require.False(t, g.Part(Part{At: at(1, 6)}), "older than what is loading")
	require.False(t, g.Part(Part{At: at(2, 2), From: "b"}), "a part of another config")
	need, next := g.Need(at(2, 1), 0)
	require.Equal(t, Whole, need)
	require.Equal(t, "b", next)
	need, next = g.Need(at(2, 2), 0)
	require.Equal(t, Whole, need)
	require.Empty(t, next, "of another config from the first part on")
	require.True(t, g.Part(Part{At: at(2, 1), From: "b"}))
	require.Equal(t, at(2, 1), g.Position)
	require.Zero(t, g.Loading)
	require.True(t, g.Accepts(1, 100))
}

func TestALeaseEndsWithItsTimeAndItsTerm(t *testing.T) {
	g := Group{Position: at(1, 5)}
	require.False(t, g.Accepts(0, 0), "it has never heard")
	require.False(t, g.Hear(Heard{Term: 3, AskedMS: 1000}, at(1, 6)), "without the change 1.6")
	require.True(t, g.Hear(Heard{Term: 3, AskedMS: 1000}, at(1, 5)))
	require.False(t, g.Hear(Heard{Term: 3, AskedMS: 900}, at(1, 5)), "an older question")
	require.True(t, g.Accepts(3, 1000+LeaseMS))
	require.False(t, g.Accepts(3, 1001+LeaseMS))
	require.False(t, g.Accepts(4, 1000))
	require.True(t, g.Hear(Heard{Term: 4, AskedMS: 900}, at(1, 5)), "by the clock of the next leader")
	require.True(t, g.Accepts(4, 900+LeaseMS))
	require.False(t, g.Accepts(4, 1000+LeaseMS))
	g.OutOfTouch()
	require.False(t, g.Accepts(4, 900))
	require.False(t, (&Group{Heard: Heard{Term: 1}}).Accepts(1, 0), "a group without config")
}

func TestGroupsThatHaveNotReportedLag(t *testing.T) {
	r := Reports{}
	require.Equal(t, []uint32{1, 2, 3}, r.Lagging(at(1, 0), 3))
	require.True(t, r.Add(2, at(1, 5)))
	require.False(t, r.Add(2, at(1, 4)), "overtaken")
	require.True(t, r.Add(1, at(2, 0)))
	require.Equal(t, []uint32{3}, r.Lagging(at(1, 5), 3))
	require.Equal(t, []uint32{2, 3}, r.Lagging(at(1, 6), 3))
}
