package rates

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

// start is the beginning of a step.
const start = int64(1_700_000_000_000)

// at is the middle of a step, counted from start.
func at(step int) int64 { return start + int64(step)*stepMS + stepMS/2 }

func instant(step int) time.Time { return time.UnixMilli(at(step)) }

func added(n uint64) *job.TopicEvents { return &job.TopicEvents{job.TopicAdded: n} }

// counts are the added jobs of a series.
func counts(s Series) (of []uint64) {
	for _, c := range s.Samples {
		of = append(of, c[job.TopicAdded])
	}
	return of
}

func TestASeriesCountsByStep(t *testing.T) {
	r := NewRecorder()
	require.Empty(t, r.Total(instant(0)), "nothing is known")
	require.Empty(t, r.Topic(instant(0), "mail"))
	r.Record(at(0), "mail", added(2))
	r.Record(at(0), "mail", &job.TopicEvents{job.TopicAdded: 1, job.TopicDied: 4})
	r.Record(at(2), "mail", added(20))
	r.Record(at(2), "work", added(5))
	r.Record(at(3), "work", &job.TopicEvents{})

	mail := r.Topic(instant(4), "mail")
	require.Equal(t, time.UnixMilli(start), mail.Start)
	require.Equal(t, []uint64{3, 0, 20, 0, 0}, counts(mail))
	require.EqualValues(t, 4, mail.Samples[0][job.TopicDied])
	require.Equal(t, []float64{0.3, 0, 2, 0}, mail.PerSecond(job.TopicAdded), "without the step under way")
	require.EqualValues(t, 20, mail.Sum(2)[job.TopicAdded])
	require.EqualValues(t, 23, mail.Sum(100)[job.TopicAdded])
	require.Equal(t, []uint64{0, 0, 5, 0, 0}, counts(r.Topic(instant(4), "work")))
	require.Equal(t, []uint64{3, 0, 25, 0, 0}, counts(r.Total(instant(4))))
	require.Equal(t, []uint64{0, 0, 0, 0, 0}, counts(r.Topic(instant(4), "idle")), "it is known that nothing happened")
	require.Equal(t, []uint64{3, 0, 25}, counts(r.Total(instant(1))), "a reader whose clock is behind")
}

func TestASeriesForgets(t *testing.T) {
	r := NewRecorder()
	for step := range 300 {
		r.Record(at(step), "mail", added(uint64(step)))
	}
	s := r.Topic(instant(299), "mail")
	require.Len(t, s.Samples, Steps+1)
	require.Equal(t, time.UnixMilli(start+(299-Steps)*stepMS), s.Start)
	for i, n := range counts(s) {
		require.EqualValues(t, 299-Steps+i, n)
	}
	s = r.Topic(instant(299+Steps), "mail")
	require.EqualValues(t, 299, s.Samples[0][job.TopicAdded], "the oldest step")
	require.Zero(t, s.Sum(Steps - 1)[job.TopicAdded])
	s = r.Topic(instant(299+Steps+1), "mail")
	require.Zero(t, s.Sum(Steps)[job.TopicAdded])
	r.Record(at(1000), "mail", added(7))
	require.EqualValues(t, 7, r.Topic(instant(1000), "mail").Sum(Steps)[job.TopicAdded], "what was there before is overwritten")
}

func TestAClockThatIsSetBackStartsAnew(t *testing.T) {
	r := NewRecorder()
	r.Record(at(50), "mail", added(1))
	r.Record(at(10), "work", added(2))
	require.Equal(t, []uint64{2, 0}, counts(r.Total(instant(11))))
	require.Equal(t, []uint64{0, 0}, counts(r.Topic(instant(11), "mail")))
}

func TestTopicsThatAreActiveKeepTheirSeries(t *testing.T) {
	r := NewRecorder()
	for i := range MaxTopics + 1 {
		r.Record(at(0), fmt.Sprint(i), added(1))
	}
	last := fmt.Sprint(MaxTopics)
	require.Empty(t, r.Topic(instant(1), last), "there was no room")
	require.Equal(t, []uint64{1, 0}, counts(r.Topic(instant(1), "0")))
	require.EqualValues(t, MaxTopics+1, r.Total(instant(1)).Sum(1)[job.TopicAdded], "the total counts all")

	r.Record(at(Steps), "0", added(1))
	r.Record(at(Steps), last, added(1))
	require.Empty(t, r.Topic(instant(Steps), last), "all were active within the window")

	r.Record(at(Steps+1), last, added(3))
	require.Equal(t, []uint64{3, 0}, counts(r.Topic(instant(Steps+2), last)), "it has the place of an idle topic; what it did before is not known")
	require.EqualValues(t, 1, r.Topic(instant(Steps+1), "0").Sum(Steps)[job.TopicAdded], "0 was active since")
	require.LessOrEqual(t, r.active.Len(), MaxTopics)
	require.Len(t, r.topics, r.active.Len())
}

func TestMemoryIsBoundedHoweverManyTopicsThereAre(t *testing.T) {
	r := NewRecorder()
	var before, after runtime.MemStats
	names := make([]string, 100_000)
	for i := range names {
		names[i] = fmt.Sprint("topic-", i)
	}
	runtime.GC()
	runtime.ReadMemStats(&before)
	for round := range 3 {
		for _, name := range names {
			r.Record(at(round*(Steps+1)), name, added(1))
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(4<<20))
	runtime.KeepAlive(names)
	runtime.KeepAlive(r)
}

func BenchmarkRecord(b *testing.B) {
	for _, topics := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprintf("topics=%d", topics), func(b *testing.B) {
			r := NewRecorder()
			names := make([]string, topics)
			for i := range names {
				names[i] = fmt.Sprint("topic-", i)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r.Record(at(0), names[i%topics], added(1))
				i++
			}
		})
	}
}

func TestTogetherIsTheSumOfEachStep(t *testing.T) {
	at := func(step int, counts ...uint64) Series {
		s := Series{Start: time.UnixMilli(start).Add(time.Duration(step) * Step)}
		for _, n := range counts {
			s.Samples = append(s.Samples, *added(n))
		}
		return s
	}
	require.Equal(t, Series{}, Together([]Series{{}, {}}))
	sum := Together([]Series{at(2, 1, 2), {}, at(1, 10, 20, 30, 40)})
	require.Equal(t, at(1).Start, sum.Start)
	require.Equal(t, []uint64{10, 21, 32, 40}, counts(sum))
	// Series of nodes' clocks that differ have no more steps than one has.
	long := at(0, make([]uint64, window)...)
	sum = Together([]Series{long, at(3, make([]uint64, window)...)})
	require.Equal(t, at(3).Start, sum.Start)
	require.Len(t, sum.Samples, window)
}
