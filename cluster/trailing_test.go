package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTrailingLogsCoverBytesAndTime(t *testing.T) {
	var idle trailing
	require.EqualValues(t, 50_000, idle.entries(100, 50_000, 400_000), "few entries: the bytes decide")
	require.EqualValues(t, 1024, new(trailing).entries(1, 3, 10), "huge entries: never fewer than a few")

	var busy trailing
	var got uint64
	for look := range uint64(30) {
		got = busy.entries(10_000*look, 50_000, 400_000)
	}
	require.EqualValues(t, 120_000, got, "two minutes of entries, not more")
	require.EqualValues(t, 100_000, busy.entries(300_000, 50_000, 100_000), "the most holds")
	require.EqualValues(t, 50_000, busy.entries(10, 50_000, 400_000), "an index that went back")
}
