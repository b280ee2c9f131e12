package fsm

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"tarry/job/jobpb"
)

// deadReasonFor returns one of some reasons, as long as those of programs are.
func deadReasonFor(reasons int) string { return deadReasonOf(rand.IntN(reasons)) }

func deadReasonOf(n int) string {
	return fmt.Sprintf("connect to the mail server: dial tcp 10.0.0.1:%d: connection refused", n)
}

// Jobs die, with few reasons or with one each, in large entries or each in one of its own.
func BenchmarkBury(b *testing.B) {
	for _, c := range []struct {
		name             string
		reasons, entries int
	}{{"reasons=10", 10, 1}, {"reasons=1000000000", 1e9, 1}, {"reasons=10,entries=1000", 10, benchOps}} {
		b.Run(c.name, func(b *testing.B) {
			d := newBench(b)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				b.StopTimer()
				held := d.reserveAll(benchOps)
				each := benchOps / c.entries
				entries := make([][]byte, c.entries)
				for i := range entries {
					entries[i] = d.entry(each, func(k int) *jobpb.Op {
						j := held[i*each+k]
						return opBury(&jobpb.Bury{Ref: &jobpb.Ref{Seq: j.Seq, Generation: j.Generation}, Reason: deadReasonFor(c.reasons)})
					})
				}
				b.StartTimer()
				for _, data := range entries {
					d.apply(data, true)
				}
				n += benchOps
				b.StopTimer()
				d.apply(d.entry(1, func(int) *jobpb.Op {
					return &jobpb.Op{Kind: &jobpb.Op_Purge{Purge: &jobpb.Purge{Topic: "t", State: jobpb.State_STATE_DEAD, Max: benchOps, Sweep: &jobpb.Sweep{Scan: benchOps}}}}
				}), true)
				b.StartTimer()
			}
			perJob(b, n)
		})
	}
}

// reserveAll adds jobs and reserves them.
func (b *bench) reserveAll(n int) (held []*jobpb.Reserved) {
	b.apply(b.adds(n, false, func() int64 { return 0 }), true)
	for _, r := range b.apply(b.entry(1, func(int) *jobpb.Op { return opReserve(uint32(n), "t") }), true) {
		held = append(held, r.Jobs...)
	}
	return held
}

// deadFlag is how many jobs BenchmarkDeadReasons has.
var deadFlag = flag.Int("fsm.dead", 1_000_000, "dead jobs of BenchmarkDeadReasons, in 1000 topics")

// The largest groups of very many dead jobs, of all topics and of one, and the topics of a
// group.
func BenchmarkDeadReasons(b *testing.B) {
	for _, reasons := range []int{10, 100_000} {
		b.Run(fmt.Sprintf("reasons=%d", reasons), func(b *testing.B) {
			d := newBench(b)
			for n := range *deadFlag / benchOps {
				d.buryAll(fmt.Sprint("topic-", n%1000), reasons)
			}
			v := d.m.View()
			defer v.Close()
			reads := map[string]*jobpb.Read{
				"all,max=100":   {What: &jobpb.Read_DeadReasons{DeadReasons: &jobpb.DeadReasonsQuery{Max: 100}}},
				"all,max=1000":  {What: &jobpb.Read_DeadReasons{DeadReasons: &jobpb.DeadReasonsQuery{Max: 1000}}},
				"topic,max=100": {What: &jobpb.Read_DeadReasons{DeadReasons: &jobpb.DeadReasonsQuery{Topic: "topic-7", Max: 100}}},
				"topics of one": {What: &jobpb.Read_DeadTopics{DeadTopics: &jobpb.DeadTopicsQuery{Reason: deadReasonOf(7), Max: 100}}},
			}
			for _, name := range slices.Sorted(maps.Keys(reads)) {
				b.Run(name, func(b *testing.B) {
					for b.Loop() {
						if _, err := v.Read(reads[name]); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		})
	}
}

// buryAll adds, reserves and buries jobs of a topic.
func (b *bench) buryAll(topic string, reasons int) {
	b.apply(b.entry(benchOps, func(int) *jobpb.Op {
		return opAdd(&jobpb.Add{Topic: topic, Body: b.body, TtrMs: 60_000})
	}), false)
	held := b.apply(b.entry(1, func(int) *jobpb.Op { return opReserve(benchOps, topic) }), true)[0].Jobs
	b.apply(b.entry(len(held), func(i int) *jobpb.Op {
		return opBury(&jobpb.Bury{Ref: &jobpb.Ref{Seq: held[i].Seq, Generation: held[i].Generation}, Reason: deadReasonFor(reasons)})
	}), false)
}
