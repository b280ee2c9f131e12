package fsm

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeList is a stored list: a sorted slice that changes only at a commit.
type fakeList struct {
	places []place
	loads  int
	read   int
}

func (f *fakeList) open(from place) (reader, func() error, error) {
	f.loads++
	at, _ := slices.BinarySearchFunc(f.places, from, place.compare)
	return &fakeReader{f, f.places[at:]}, func() error { return nil }, nil
}

type fakeReader struct {
	list *fakeList
	rest []place
}

func (r *fakeReader) next() (place, bool, error) {
	if len(r.rest) == 0 {
		return place{}, false, nil
	}
	p := r.rest[0]
	r.rest = r.rest[1:]
	r.list.read++
	return p, true, nil
}

// windowed is a window and its list, as of the running transaction.
type windowed struct {
	t     *testing.T
	w     window
	store fakeList
	truth []place
}

func (d *windowed) insert(p place) {
	at, found := slices.BinarySearchFunc(d.truth, p, place.compare)
	require.False(d.t, found)
	d.truth = slices.Insert(d.truth, at, p)
	d.w.insert(p)
}

func (d *windowed) remove(p place) {
	at, found := slices.BinarySearchFunc(d.truth, p, place.compare)
	require.True(d.t, found)
	d.truth = slices.Delete(d.truth, at, at+1)
	require.NoError(d.t, d.w.remove(p))
	if len(d.truth) == 0 {
		d.w.emptied()
	}
}

func (d *windowed) head() (place, bool) {
	if len(d.truth) == 0 {
		return place{}, false
	}
	if d.w.len() == 0 {
		require.NoError(d.t, d.w.load(uint64(len(d.truth)), d.store.open))
	}
	return d.w.live()[0], true
}

func (d *windowed) commit() {
	d.store.places = slices.Clone(d.truth)
	d.w.committed()
}

// check checks the invariant: every place below bound, and no other.
func (d *windowed) check() {
	var want []place
	for _, p := range d.truth {
		if d.w.covers(p) {
			want = append(want, p)
		}
	}
	require.Equal(d.t, len(want), d.w.len())
	require.True(d.t, slices.Equal(want, d.w.live()), "want %v\ngot  %v", want, d.w.live())
	require.LessOrEqual(d.t, d.w.len(), d.w.capacity)
}

func TestWindowIsTheHeadOfItsList(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 0))
		d := &windowed{t: t, w: window{complete: rng.IntN(2) == 0, capacity: 2 + rng.IntN(40)}}
		seq := uint64(0)
		lean := 6 // out of 12: how often a step adds
		for range 20_000 {
			if rng.IntN(300) == 0 {
				lean = rng.IntN(13)
			}
			switch n := rng.IntN(12); {
			case n < lean:
				seq++
				instant := int64(rng.IntN(50))
				if rng.IntN(3) == 0 {
					instant = int64(seq) // at the end
				}
				d.insert(place{priority: uint32(rng.IntN(2)), instant: instant, seq: seq, carried: rng.Uint32()})
			case len(d.truth) == 0:
			case rng.IntN(3) == 0:
				p := d.truth[rng.IntN(len(d.truth))]
				d.remove(p)
				if rng.IntN(2) == 0 { // and back, with another value
					p.carried = rng.Uint32()
					d.insert(p)
				}
			default:
				p, ok := d.head()
				require.True(t, ok)
				require.Equal(t, d.truth[0], p)
				d.remove(p)
			}
			if len(d.truth) > 0 {
				p := d.truth[rng.IntN(len(d.truth))]
				found, known := d.w.has(p)
				require.True(t, found || !known)
				p.seq += 1 << 40
				found, _ = d.w.has(p)
				require.False(t, found)
			}
			d.check()
			if rng.IntN(10) == 0 {
				d.commit()
			}
		}
	})
}

func TestWindowReadsEachPlaceOnce(t *testing.T) {
	const n = 100_000
	d := &windowed{t: t, w: window{complete: true, capacity: 2048}}
	for seq := range uint64(n) {
		d.insert(place{instant: int64(seq), seq: seq})
	}
	d.commit()
	for len(d.truth) > 0 {
		p, _ := d.head()
		require.Equal(t, d.truth[0], p)
		// As d.remove, without moving a hundred thousand places each time.
		d.truth = d.truth[1:]
		require.NoError(t, d.w.remove(p))
		if len(d.truth)%500 == 0 {
			d.w.committed()
			d.store.places = d.truth
		}
	}
	require.LessOrEqual(t, d.store.read, n)
	require.Less(t, d.store.loads, n/500)
}

func TestWindowReadsInGrowingRuns(t *testing.T) {
	d := &windowed{t: t, w: window{capacity: 2048}}
	for seq := range uint64(5000) {
		d.truth = append(d.truth, place{seq: seq})
	}
	d.commit()
	var runs []int
	for range 9 {
		_, _ = d.head()
		runs = append(runs, d.w.len())
		for _, p := range slices.Clone(d.w.live()) {
			d.remove(p)
		}
	}
	require.Equal(t, []int{16, 32, 64, 128, 256, 512, 1024, 1024, 1024}, runs)
}

func TestWindowFailsOnAWrongCount(t *testing.T) {
	d := &windowed{t: t, w: window{capacity: 100}}
	d.store.places = []place{{seq: 1}, {seq: 2}}
	err := d.w.load(3, d.store.open)
	require.ErrorContains(t, err, "list has 2 places")
	known := window{complete: true, capacity: 100}
	require.ErrorContains(t, known.remove(place{seq: 1}), "missing")
}

func TestWindowMemoryIsBounded(t *testing.T) {
	d := window{complete: true, capacity: 64}
	for seq := range uint64(1_000_000) {
		d.insert(place{instant: int64(seq), seq: seq})
		require.NoError(t, d.remove(place{instant: int64(seq), seq: seq}))
		if seq%100 == 0 {
			d.committed()
		}
	}
	require.LessOrEqual(t, cap(d.places), 4*64)
}
