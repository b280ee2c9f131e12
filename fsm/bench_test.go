package fsm

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
	"tarry/job/oplog"
)

var (
	drainFlag   = flag.Int("fsm.drain", 200_000, "jobs of BenchmarkDrainTopic")
	pendingFlag = flag.Int("fsm.pending", 0, "jobs of TestPendingJobsFitInMemory; 0: it is skipped")
)

const (
	benchOps  = 1000 // operations of one entry
	benchBody = 200
)

// bench drives a machine on the real file system.
type bench struct {
	testing.TB
	m     *Machine
	dir   string
	index uint64
	now   int64
	body  []byte
	// options of the jobs; nil: none.
	options *jobpb.JobOptions
}

func newBench(tb testing.TB) *bench {
	b := &bench{TB: tb, dir: tb.TempDir(), now: rigStart, body: []byte(strings.Repeat("payload ", benchBody/8))}
	b.open()
	tb.Cleanup(func() { require.NoError(tb, b.m.Close()) })
	return b
}

func (b *bench) open() {
	m, err := Open(b.dir, Options{})
	require.NoError(b, err)
	b.m = m
}

func (b *bench) apply(data []byte, replies bool) []*jobpb.Result {
	b.index++
	results, _, err := b.m.Apply([]Entry{{Index: b.index, Term: 1, Data: data}}, replies)
	if err != nil {
		b.Fatal(err)
	}
	if !replies {
		return nil
	}
	return results[0]
}

func (b *bench) entry(n int, op func(i int) *jobpb.Op) []byte {
	data := oplog.AppendEntryHeader(nil, b.now)
	for i := range n {
		var err error
		if data, err = oplog.AppendOp(data, op(i)); err != nil {
			b.Fatal(err)
		}
	}
	return data
}

func (b *bench) adds(n int, ownIDs bool, delay func() int64) []byte {
	return b.entry(n, func(i int) *jobpb.Op {
		a := &jobpb.Add{Topic: "t", Body: b.body, Priority: 1024, TtrMs: 60_000, MaxAttempts: 16, DelayMs: delay(), Options: b.options}
		if ownIDs {
			a.Id = "order-" + strconv.FormatUint(b.index*benchOps+uint64(i), 10)
		}
		return opAdd(a)
	})
}

// perJob reports the time per job instead of per entry.
func perJob(b *testing.B, jobs int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(jobs), "ns/job")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkAdd(b *testing.B) {
	for _, ownIDs := range []bool{false, true} {
		for _, replies := range []bool{true, false} {
			b.Run(fmt.Sprintf("ownIDs=%v/replies=%v", ownIDs, replies), func(b *testing.B) {
				d := newBench(b)
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					b.StopTimer()
					data := d.adds(benchOps, ownIDs, func() int64 { return rand.Int64N(1_000_000) })
					b.StartTimer()
					d.apply(data, replies)
					n += benchOps
				}
				perJob(b, n)
			})
		}
	}
}

// Delayed jobs by how far apart their due instants are. The last two divide them among
// topics, and make each job an entry of its own.
func BenchmarkAddDelayed(b *testing.B) {
	for _, c := range []struct {
		name            string
		spreadMS        int64
		topics, entries int
	}{
		{"equal", 1, 1, 1}, {"hour", hourMS, 1, 1}, {"year", 365 * 24 * hourMS, 1, 1},
		{"year,topics=100", 365 * 24 * hourMS, 100, 1}, {"year,entries=1000", 365 * 24 * hourMS, 1, benchOps},
	} {
		b.Run(c.name, func(b *testing.B) {
			d := newBench(b)
			b.ReportAllocs()
			n := 0
			entries := make([]Entry, c.entries)
			for b.Loop() {
				b.StopTimer()
				for i := range entries {
					d.index++
					entries[i] = Entry{Index: d.index, Term: 1, Data: d.entry(benchOps/c.entries, func(i int) *jobpb.Op {
						return opAdd(&jobpb.Add{
							Topic: strconv.Itoa(rand.IntN(c.topics)), Body: d.body, Priority: 1024, TtrMs: 60_000, MaxAttempts: 16,
							DelayMs: hourMS + rand.Int64N(c.spreadMS),
						})
					})}
				}
				b.StartTimer()
				for i := range entries {
					if _, _, err := d.m.Apply(entries[i:i+1], true); err != nil {
						b.Fatal(err)
					}
				}
				n += benchOps
			}
			perJob(b, n)
		})
	}
}

// A job is added with a delay, falls due, is reserved and finished.
func BenchmarkCycle(b *testing.B) { benchmarkCycle(b, newBench(b), 0) }

// The same with a retention, which ends one or two rounds later.
func BenchmarkCycleRetained(b *testing.B) { benchmarkCycle(b, newBench(b), 1000) }

// The same with a header, which the topic indexes or not.
func BenchmarkCycleHeader(b *testing.B) {
	for _, indexed := range []bool{false, true} {
		b.Run(fmt.Sprintf("indexed=%v", indexed), func(b *testing.B) {
			d := newBench(b)
			d.options = orderOptions
			if indexed {
				d.apply(encodeEntry(b, d.now, indexOrders), true)
			}
			benchmarkCycle(b, d, 0)
		})
	}
}

var (
	orderOptions = &jobpb.JobOptions{Headers: []*jobpb.Header{{Name: "order", Value: "5"}}}
	indexOrders  = opSettings(&jobpb.SetTopic{Topic: "t", Settings: &jobpb.TopicSettings{IndexHeaders: []string{"order"}}})
)

// Jobs of before the setting are indexed.
func BenchmarkIndexHeaders(b *testing.B) {
	const jobs = 20 * benchOps
	for b.Loop() {
		b.StopTimer()
		d := newBench(b)
		d.options = orderOptions
		for range jobs / benchOps {
			d.apply(d.adds(benchOps, true, func() int64 { return 1_000_000 }), true)
		}
		d.apply(encodeEntry(b, d.now, indexOrders), true)
		b.StartTimer()
		for d.m.NextDue() == atOnce {
			d.apply(encodeEntry(b, d.now, opAdvance(benchOps)), true)
		}
	}
	perJob(b, b.N*jobs)
}

func benchmarkCycle(b *testing.B, d *bench, retainMS int64) {
	if retainMS > 0 {
		d.apply(encodeEntry(b, d.now, opRetain("t", retainMS)), true)
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		b.StopTimer()
		add := d.adds(benchOps, true, func() int64 { return 1 })
		b.StartTimer()
		d.apply(add, true)
		d.now += 2
		if retainMS > 0 {
			d.now += retainMS
			d.apply(encodeEntry(b, d.now, opAdvance(benchOps)), true)
		}
		d.apply(encodeEntry(b, d.now, opAdvance(benchOps)), true)
		got := d.apply(encodeEntry(b, d.now, opReserve(benchOps, "t")), true)[0].Jobs
		if len(got) != benchOps {
			b.Fatalf("reserved %d", len(got))
		}
		b.StopTimer()
		finish := d.entry(len(got), func(i int) *jobpb.Op {
			return opFinish(&jobpb.Ref{Id: got[i].Id, Seq: got[i].Seq, Generation: got[i].Generation})
		})
		b.StartTimer()
		d.apply(finish, true)
		n += benchOps
	}
	perJob(b, n)
}

// BenchmarkDrainTopic takes jobs from the head of one topic, which leaves tombstones where
// the next read starts. The cost of a job must not grow from the first tenth to the last.
func BenchmarkDrainTopic(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		d := newBench(b)
		total := *drainFlag
		for filled := 0; filled < total; filled += benchOps {
			d.apply(d.adds(benchOps, false, func() int64 { return 0 }), false)
		}
		b.StartTimer()
		report := make([]string, 0, 10)
		for tenth := range 10 {
			start := time.Now()
			jobs := d.drain(total/10, 100)
			cost := time.Since(start).Nanoseconds() / int64(jobs)
			report = append(report, strconv.FormatInt(cost, 10))
			if tenth == 0 || tenth == 9 {
				b.ReportMetric(float64(cost), fmt.Sprintf("ns/job-tenth-%d", tenth+1))
			}
		}
		b.Logf("%d jobs, reserve and finish, ns a job in each tenth: %s", total, strings.Join(report, " "))
	}
}

// drain reserves and finishes n jobs, in batches.
func (b *bench) drain(n, at int) int {
	done := 0
	for done < n {
		got := b.apply(encodeEntry(b, b.now, opReserve(uint32(at), "t")), true)[0].Jobs
		if len(got) == 0 {
			b.Fatal("the topic ran dry")
		}
		b.apply(b.entry(len(got), func(i int) *jobpb.Op {
			return opFinish(fenced(got[i].Seq, got[i].Generation))
		}), true)
		done += len(got)
	}
	return done
}

// Ten million delayed jobs must fit into a gigabyte, and load within seconds after a
// restart. It takes minutes, so it runs on demand:
//
//	go test ./fsm -run PendingJobs -fsm.pending 10000000 -v
func TestPendingJobsFitInMemory(t *testing.T) {
	if *pendingFlag == 0 {
		t.Skip("on demand: -fsm.pending N")
	}
	b := newBench(t)
	start := time.Now()
	for range *pendingFlag / benchOps {
		b.apply(b.adds(benchOps, false, func() int64 { return 1 + rand.Int64N(1<<40) }), false)
	}
	t.Logf("%d jobs added in %v, resident %d MiB", *pendingFlag, time.Since(start).Round(time.Millisecond), resident(t)>>20)
	require.NoError(t, b.m.Close())
	runtime.GC()
	start = time.Now()
	b.open()
	took := time.Since(start)
	t.Logf("opened in %v, resident %d MiB", took.Round(time.Millisecond), resident(t)>>20)
	require.NotZero(t, b.m.NextDue())
	require.Less(t, resident(t), int64(1<<30))
}

// resident returns the process's memory.
func resident(t *testing.T) int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("only where /proc is")
	}
	pages, err := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}
