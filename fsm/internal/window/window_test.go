package window

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/fsm/internal/record"
	"tarry/internal/testseed"
)

// fakeList is a stored list: a sorted slice that changes only at a commit.
type fakeList struct {
	places []record.Place
	loads  int
	read   int
}

func (f *fakeList) open(from record.Place) (Reader, func() error, error) {
	f.loads++
	at, _ := slices.BinarySearchFunc(f.places, from, record.Place.Compare)
	return &fakeReader{f, f.places[at:]}, func() error { return nil }, nil
}

type fakeReader struct {
	List *fakeList
	Rest []record.Place
}

func (r *fakeReader) Next() (record.Place, bool, error) {
	if len(r.Rest) == 0 {
		return record.Place{}, false, nil
	}
	p := r.Rest[0]
	r.Rest = r.Rest[1:]
	r.List.read++
	return p, true, nil
}

// windowed is a window and its list, as of the running transaction.
type windowed struct {
	t     *testing.T
	w     Window
	store fakeList
	truth []record.Place
}

func (d *windowed) insert(p record.Place) {
	at, found := slices.BinarySearchFunc(d.truth, p, record.Place.Compare)
	require.False(d.t, found)
	d.truth = slices.Insert(d.truth, at, p)
	d.w.Insert(p)
}

func (d *windowed) remove(p record.Place) {
	at, found := slices.BinarySearchFunc(d.truth, p, record.Place.Compare)
	require.True(d.t, found)
	d.truth = slices.Delete(d.truth, at, at+1)
	require.NoError(d.t, d.w.Remove(p))
	if len(d.truth) == 0 {
		d.w.Emptied()
	}
}

func (d *windowed) head() (record.Place, bool) {
	if len(d.truth) == 0 {
		return record.Place{}, false
	}
	if d.w.Len() == 0 {
		require.NoError(d.t, d.w.Load(uint64(len(d.truth)), d.store.open))
	}
	return d.w.Live()[0], true
}

func (d *windowed) commit() {
	d.store.places = slices.Clone(d.truth)
	d.w.Committed()
}

// check checks the invariant: every place below bound, and no other.
func (d *windowed) check() {
	var want []record.Place
	for _, p := range d.truth {
		if d.w.Covers(p) {
			want = append(want, p)
		}
	}
	require.Equal(d.t, len(want), d.w.Len())
	require.True(d.t, slices.Equal(want, d.w.Live()), "want %v\ngot  %v", want, d.w.Live())
	require.LessOrEqual(d.t, d.w.Len(), d.w.Capacity)
}

func TestWindowIsTheHeadOfItsList(t *testing.T) {
	testseed.Each(t, func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 0))
		d := &windowed{t: t, w: Window{complete: rng.IntN(2) == 0, Capacity: 2 + rng.IntN(40)}}
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
				d.insert(record.Place{Priority: uint32(rng.IntN(2)), Instant: instant, Seq: seq, Carried: rng.Uint32()})
			case len(d.truth) == 0:
			case rng.IntN(3) == 0:
				p := d.truth[rng.IntN(len(d.truth))]
				d.remove(p)
				if rng.IntN(2) == 0 { // and back, with another value
					p.Carried = rng.Uint32()
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
				found, known := d.w.Has(p)
				require.True(t, found || !known)
				p.Seq += 1 << 40
				found, _ = d.w.Has(p)
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
	d := &windowed{t: t, w: Window{complete: true, Capacity: 2048}}
	for seq := range uint64(n) {
		d.insert(record.Place{Instant: int64(seq), Seq: seq})
	}
	d.commit()
	for len(d.truth) > 0 {
		p, _ := d.head()
		require.Equal(t, d.truth[0], p)
		// As d.remove, without moving a hundred thousand places each time.
		d.truth = d.truth[1:]
		require.NoError(t, d.w.Remove(p))
		if len(d.truth)%500 == 0 {
			d.w.Committed()
			d.store.places = d.truth
		}
	}
	require.LessOrEqual(t, d.store.read, n)
	require.Less(t, d.store.loads, n/500)
}

func TestWindowReadsInGrowingRuns(t *testing.T) {
	d := &windowed{t: t, w: Window{Capacity: 2048}}
	for seq := range uint64(5000) {
		d.truth = append(d.truth, record.Place{Seq: seq})
	}
	d.commit()
	var runs []int
	for range 9 {
		_, _ = d.head()
		runs = append(runs, d.w.Len())
		for _, p := range slices.Clone(d.w.Live()) {
			d.remove(p)
		}
	}
	require.Equal(t, []int{16, 32, 64, 128, 256, 512, 1024, 1024, 1024}, runs)
}

func TestWindowFailsOnAWrongCount(t *testing.T) {
	d := &windowed{t: t, w: Window{Capacity: 100}}
	d.store.places = []record.Place{{Seq: 1}, {Seq: 2}}
	err := d.w.Load(3, d.store.open)
	require.ErrorContains(t, err, "list has 2 places")
	known := Window{complete: true, Capacity: 100}
	require.ErrorContains(t, known.Remove(record.Place{Seq: 1}), "missing")
}

func TestWindowMemoryIsBounded(t *testing.T) {
	d := Window{complete: true, Capacity: 64}
	for seq := range uint64(1_000_000) {
		d.Insert(record.Place{Instant: int64(seq), Seq: seq})
		require.NoError(t, d.Remove(record.Place{Instant: int64(seq), Seq: seq}))
		if seq%100 == 0 {
			d.Committed()
		}
	}
	require.LessOrEqual(t, cap(d.places), 4*64)
}
