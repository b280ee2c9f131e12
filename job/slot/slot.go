package slot

import (
	"fmt"
	"hash/crc32"
	"math/bits"
	"strings"

	"tarry/job"
)

// Count is the number of slots, and the most shards that a cluster can have.
const Count = 4096

// Check returns an error unless a cluster can have so many shards: a power of two up to Count.
func Check(shards int) error {
	if shards < 1 || shards > Count || bits.OnesCount(uint(shards)) != 1 {
		return fmt.Errorf("%d shards: the number of shards is a power of two from 1 to %d", shards, Count)
	}
	return nil
}

// Basis returns the part of an id that determines its slot: what stands between the first { and
// the next } if that is not empty, as in Redis Cluster; of the id of a schedule's run, the
// schedule's name; else the whole id.
func Basis(id string) string {
	if tag, ok := Tag(id); ok {
		return tag
	}
	for from := 0; ; {
		at := strings.IndexByte(id[from:], '@')
		if at < 0 {
			return id
		}
		from += at + 1
		if isRun(id[from:]) {
			return id[:from-1]
		}
	}
}

// Tag returns what stands between the first { of an id and the next }, unless that is empty.
func Tag(id string) (tag string, ok bool) {
	_, rest, found := strings.Cut(id, "{")
	if !found {
		return "", false
	}
	tag, _, found = strings.Cut(rest, "}")
	return tag, found && tag != ""
}

// isRun reports whether s is how the id of a run goes on after the schedule's name and the @:
// with the planned instant, or with now- (job.RunID, job.KeyedRunID).
func isRun(s string) bool {
	const instant = "0000-00-00T00:00:00"
	if strings.HasPrefix(s, "now-") {
		return true
	}
	if len(s) < len(instant) {
		return false
	}
	for i := range len(instant) {
		if want := instant[i]; want == '0' && (s[i] < '0' || s[i] > '9') || want != '0' && s[i] != want {
			return false
		}
	}
	return true
}

// Of returns the slot of a job by the id that its producer or its schedule gave it.
func Of(id string) uint32 { return OfName(Basis(id)) }

// OfName returns the slot of a name: of a basis, and of a topic that keeps all its jobs in one
// shard.
func OfName(name string) uint32 { return crc32.ChecksumIEEE([]byte(name)) % Count }

// OfSchedule returns the slot of a schedule, which is that of its runs.
func OfSchedule(name string) uint32 { return Of(job.KeyedRunID(name, "")) }

// Shard returns the shard of a job by its id, from 0 to shards-1. shards is a power of two up to
// Count.
func Shard(id string, shards uint32) uint32 {
	if _, seq, ok := job.ParseServerID(id); ok {
		return ShardOfSeq(seq, shards)
	}
	return Of(id) % shards
}

// ShardOfSeq returns the shard of a job by its seq, from 0 to shards-1. The first shard gives the
// seqs 1, 1+shards, 1+2*shards and so on, the second 2, 2+shards and so on.
func ShardOfSeq(seq uint64, shards uint32) uint32 { return uint32((seq - 1) % uint64(shards)) }
