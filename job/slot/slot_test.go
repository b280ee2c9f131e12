package slot

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tarry/job"
)

// The file is shared with the clients in other languages. Its figures never change: jobs that are
// stored would not be found any more.
func TestIDsHaveTheSlotsOfTheGoldenFile(t *testing.T) {
	data, err := os.ReadFile("testdata/slots.json")
	require.NoError(t, err)
	var cases []struct {
		ID, Basis string
		Slot      uint32
	}
	require.NoError(t, json.Unmarshal(data, &cases))
	require.NotEmpty(t, cases)
	for _, c := range cases {
		assert.Equal(t, c.Basis, Basis(c.ID), c.ID)
		assert.Equal(t, c.Slot, Of(c.ID), c.ID)
	}
}

func TestARunHasTheSlotOfItsSchedule(t *testing.T) {
	for _, name := range []string{"nightly", "a@b", "a@now-b", "x@2026-11-30T00:00:0", "{order-5}-daily", "{}"} {
		want := OfSchedule(name)
		assert.Equal(t, want, Of(job.RunID(name, 1_764_547_200_000, 0)), name)
		assert.Equal(t, want, Of(job.RunID(name, 1_764_547_200_123, 3)), name)
		assert.Equal(t, want, Of(job.KeyedRunID(name, "k@now-1")), name)
	}
}

func TestSeqsOfAShardStayInItsHalvesWhenTheShardsDouble(t *testing.T) {
	for seq := uint64(1); seq < 10_000; seq += 7 {
		for shards := uint32(1); shards < Count; shards *= 2 {
			assert.Equal(t, ShardOfSeq(seq, shards), ShardOfSeq(seq, 2*shards)%shards)
		}
	}
	assert.Equal(t, uint32(3), Shard(job.ServerID(0, 12), 4))
	assert.Equal(t, uint32(0), Shard(job.ServerID(0, 13), 4))
}

func TestSlotsSpreadIDs(t *testing.T) {
	const shards, ids = 16, 64_000
	var n [shards]int
	for i := range ids {
		n[Shard(fmt.Sprintf("order-%d", i), shards)]++
	}
	for shard, n := range n {
		assert.InDelta(t, ids/shards, n, ids/shards/5, "shard %d", shard)
	}
}

func TestOnlyAPowerOfTwoIsANumberOfShards(t *testing.T) {
	for _, n := range []int{1, 2, 4, 4096} {
		assert.NoError(t, Check(n), n)
	}
	for _, n := range []int{-4, 0, 3, 6, 4095, 8192} {
		assert.Error(t, Check(n), n)
	}
}
