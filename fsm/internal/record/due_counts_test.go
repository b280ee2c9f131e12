package record

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tarry/internal/testseed"
)

// storedCounts are the due counts that a store should have: by key and minute.
type storedCounts map[string]map[TopicMinute]int64

func (c storedCounts) add(key []byte, changes []DueCount) {
	sums := c[string(key)]
	if sums == nil {
		sums = map[TopicMinute]int64{}
		c[string(key)] = sums
	}
	for _, change := range changes {
		if sums[change.At] += change.Jobs; sums[change.At] == 0 {
			delete(sums, change.At)
		}
	}
}

// equal compares them with a store, whose records are sums in their one encoding.
func (c storedCounts) equal(t *testing.T, r pebble.Reader) {
	found := 0
	require.NoError(t, Scan(r, []byte{SpaceDue}, []byte{SpaceDue + 1}, func(key, value []byte) error {
		found++
		want := []DueCount{}
		for _, at := range slices.Sorted(maps.Keys(c[string(key)])) {
			want = append(want, DueCount{at, c[string(key)][at]})
		}
		require.Equal(t, AppendDueCounts(nil, want), append([]byte(nil), value...), "key %x", key)
		return nil
	}))
	require.Len(t, c, found)
}

func (c storedCounts) clone() storedCounts {
	copied := storedCounts{}
	for key, sums := range c {
		copied[key] = maps.Clone(sums)
	}
	return copied
}

// openStore opens a store in memory with small memtables.
func openStore(t *testing.T) *pebble.DB {
	db, err := pebble.Open("store", &pebble.Options{FS: vfs.NewMem(), MemTableSize: 64 << 10, Merger: DueCountsMerger})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// Changes add up whatever the store flushes and compacts in between, and in views of earlier
// states. A key that is deleted has only the changes after that.
func TestDueCountsAddUpInTheStore(t *testing.T) {
	testseed.Each(t, func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 0))
		db := openStore(t)
		want := storedCounts{}
		var view *pebble.Snapshot
		var viewed storedCounts
		endView := func() {
			if view != nil {
				viewed.equal(t, view)
				require.NoError(t, view.Close())
				view = nil
			}
		}
		for range 400 {
			key := KeyDueChanges
			if rng.IntN(3) > 0 {
				key = AppendDueKey(nil, rng.Uint32N(2), rng.Uint32N(3))
			}
			switch n := rng.IntN(20); {
			case n == 0:
				require.NoError(t, db.Flush())
			case n == 1 && rng.IntN(4) == 0:
				require.NoError(t, db.Compact(context.Background(), []byte{0}, []byte{255}, false))
			case n == 2:
				endView()
				view, viewed = db.NewSnapshot(), want.clone()
			case n == 3:
				require.NoError(t, db.Delete(key, pebble.NoSync))
				delete(want, string(key))
			default:
				changes := make([]DueCount, 1+rng.IntN(4))
				for i := range changes {
					changes[i] = DueCount{TopicMinute(rng.IntN(3)), rng.Int64N(3) - 1}
				}
				changes = AddUp(changes)
				require.NoError(t, db.Merge(key, AppendDueCounts(nil, changes), pebble.NoSync))
				want.add(key, changes)
			}
			want.equal(t, db)
		}
		endView()
		want.equal(t, db)
	})
}

// Many values of one key are added up in few steps.
func TestDueSumOfManyValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	sum, want := &DueSum{}, map[TopicMinute]int64{}
	for range 1000 {
		changes := make([]DueCount, rng.IntN(20))
		for i := range changes {
			changes[i] = DueCount{TopicMinute(rng.IntN(5000)), 1}
			want[changes[i].At]++
		}
		require.NoError(t, sum.MergeNewer(AppendDueCounts(nil, AddUp(changes))))
		require.LessOrEqual(t, len(sum.sums), 14)
	}
	value, _, err := sum.Finish(true)
	require.NoError(t, err)
	got, err := DecodeDueCounts(nil, value)
	require.NoError(t, err)
	require.Len(t, got, len(want))
	for _, c := range got {
		require.Equal(t, want[c.At], c.Jobs)
	}
}
