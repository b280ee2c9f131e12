package tokenbucket

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBucketsOfNamesAreBounded(t *testing.T) {
	const most = 100
	b, at := NewBuckets(2, time.Second, most), time.UnixMilli(0)
	for range 2 {
		require.True(t, b.Take("a", at))
	}
	require.False(t, b.Take("a", at))
	require.True(t, b.Take("b", at))
	require.False(t, b.Take("a", at.Add(time.Second-1)))
	require.True(t, b.Take("a", at.Add(time.Second)))
	for n := range 3 * most {
		b.Take(fmt.Sprint(n), at.Add(time.Hour))
		require.LessOrEqual(t, len(b.of), most)
	}
	full := NewBuckets(1, time.Second, most)
	for n := range most {
		full.Take(fmt.Sprint(n), at)
	}
	full.Take("1", at.Add(2*time.Second))
	full.Take("new", at.Add(2*time.Second))
	require.False(t, full.Take("1", at.Add(2*time.Second)), "who was refused is not forgotten for the others")
	require.Len(t, full.of, 2)
}

func TestABucketFillsWithItsRate(t *testing.T) {
	at := time.UnixMilli(0)
	b := New(2, 20, at)
	b.Left = 0
	require.False(t, b.Take(at))
	require.True(t, b.Take(at.Add(500*time.Millisecond)))
	require.False(t, b.Take(at.Add(500*time.Millisecond)))
	require.Equal(t, 500*time.Millisecond, b.Wait(1))
	b.Fill(at.Add(time.Hour))
	require.EqualValues(t, 20, b.Left)
	require.Zero(t, b.Wait(1000), "more than the burst is allowed while it is full")
	b.Left -= 1000
	b.Return(20)
	require.Equal(t, 490*time.Second, b.Wait(20).Round(time.Second))
	b.FillAt(1, 5, at.Add(time.Hour))
	require.EqualValues(t, 5, b.Left, "the debt of another rate is forgiven")
}
