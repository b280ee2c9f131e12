package bench

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/testseed"
)

func TestQuantilesAreWithinTwoPercentOfTheSortedSample(t *testing.T) {
	seed := testseed.New()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var h Histogram
	var sample []time.Duration
	for range 20_000 {
		// From microseconds to hours, evenly over the orders of magnitude.
		d := time.Duration(1<<r.IntN(32)+r.IntN(1000)) * time.Microsecond
		h.Record(d)
		sample = append(sample, d)
	}
	slices.Sort(sample)
	for _, q := range []float64{0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1} {
		want := sample[int(q*float64(len(sample))+0.999999)-1]
		require.InEpsilon(t, float64(want), float64(h.Quantile(q)), 0.02, "q=%v", q)
	}
	require.Equal(t, sample[len(sample)-1], h.Max())
	require.Equal(t, uint64(len(sample)), h.Count())
}

func TestBucketsCoverEveryValueInOrder(t *testing.T) {
	before := -1
	for v := uint64(0); v < 1<<20; v++ {
		b := bucket(v)
		require.True(t, b == before || b == before+1, "value %d is in bucket %d after %d", v, b, before)
		require.LessOrEqual(t, lowest(b), v)
		require.Greater(t, lowest(b+1), v)
		before = b
	}
	var h Histogram
	h.Record(time.Duration(1<<63 - 1))
	h.Record(-time.Second)
	require.Equal(t, uint64(2), h.Count())
	require.Zero(t, h.Quantile(0.5))
}

func TestMergeAddsUp(t *testing.T) {
	var a, b, both Histogram
	for i := range 1000 {
		d := time.Duration(i) * time.Millisecond
		both.Record(d)
		if i%3 == 0 {
			a.Record(d)
		} else {
			b.Record(d)
		}
	}
	a.Merge(&b)
	require.Equal(t, both, a)
}

func TestEmptyHistogramHasNoQuantiles(t *testing.T) {
	var h Histogram
	require.Equal(t, Summary{}, summarize(&h))
}
