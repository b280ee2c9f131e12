package fsm

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// TestBodiesOfPendingJobsAreNotWrittenAgain fails if compactions rewrite bodies that arrive one
// after the other, as they did before tables ended where bodies do.
func TestBodiesOfPendingJobsAreNotWrittenAgain(t *testing.T) {
	const batch, size, jobs = 100, 10_000, 24_000
	d := newBench(t)
	random := rand.NewChaCha8([32]byte{1})
	for added := 0; added < jobs; added += batch {
		d.now += 10
		d.apply(d.entry(batch, func(int) *jobpb.Op {
			body := make([]byte, size)
			_, err := random.Read(body)
			require.NoError(t, err)
			return opAdd(&jobpb.Add{Topic: "t", Body: body, Priority: 1024, TtrMs: 60_000, MaxAttempts: 16, DelayMs: 3_600_000})
		}), false)
	}
	written := d.m.store.db.Metrics()
	require.Greater(t, written.Levels[0].TableBytesFlushed, uint64(jobs*size/2), "the test needs more than one flush")
	require.Less(t, written.Total().TableBytesCompacted, written.Levels[0].TableBytesFlushed/10)
}

// BenchmarkStoreWrites reports what the store writes to the disk for each byte of a body: flushes
// and compactions. Bodies do not compress. Jobs go to 16 topics, and
// are taken and finished once lag younger ones are pending; lag 0: they stay.
func BenchmarkStoreWrites(b *testing.B) {
	const batch, topicCount, batchMS = 100, 16, 10
	topics := make([]string, topicCount)
	for i := range topics {
		topics[i] = "t" + strconv.Itoa(i)
	}
	for _, c := range []struct{ size, jobs, lag int }{{200, 1_500_000, 0}, {200, 600_000, 300_000}, {40_000, 30_000, 10_000}} {
		b.Run(fmt.Sprintf("size=%d/jobs=%d/lag=%d", c.size, c.jobs, c.lag), func(b *testing.B) {
			for b.Loop() {
				d := newBench(b)
				random := rand.NewChaCha8([32]byte{1})
				for added := 0; added < c.jobs; added += batch {
					d.now += batchMS
					d.apply(d.entry(batch, func(int) *jobpb.Op {
						body := make([]byte, c.size)
						_, err := random.Read(body)
						require.NoError(b, err)
						return opAdd(&jobpb.Add{
							Topic: topics[random.Uint64()%topicCount], Body: body, Priority: 1024, TtrMs: 60_000, MaxAttempts: 16,
							DelayMs: int64(c.lag/batch*batchMS) + int64(random.Uint64()%1000),
						})
					}), false)
					if c.lag == 0 || added < c.lag {
						continue
					}
					d.apply(d.entry(1, func(int) *jobpb.Op { return opAdvance(10 * batch) }), false)
					jobs := d.apply(d.entry(1, func(int) *jobpb.Op { return opReserve(batch, topics...) }), true)[0].Jobs
					d.apply(d.entry(len(jobs), func(i int) *jobpb.Op {
						return opFinish(&jobpb.Ref{Seq: jobs[i].Seq, Generation: jobs[i].Generation})
					}), false)
				}
				m := d.m.store.db.Metrics()
				bodies := float64(c.size * c.jobs)
				b.ReportMetric(float64(m.Levels[0].TableBytesFlushed)/bodies, "flushed/body")
				b.ReportMetric(float64(m.Total().TableBytesCompacted)/bodies, "compacted/body")
				b.ReportMetric(float64(m.DiskSpaceUsage())/bodies, "on-disk/body")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}
