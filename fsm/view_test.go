package fsm

import (
	"flag"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

// listed returns a page and how many entries it examined.
func (r *rig) listed(q *jobpb.JobQuery) (page *jobpb.JobPage, scanned int) {
	r.t.Helper()
	v := r.m.View()
	defer v.Close()
	require.NoError(r.t, job.CheckJobQuery(q))
	require.NoError(r.t, v.With(func(p pebble.Reader) (err error) { page, scanned, err = v.List(p, q); return err }))
	return page, scanned
}

var jobsFlag = flag.Int("fsm.jobs", 30_000, "jobs in the large topic of a test of pages")

// The cost of a page does not depend on the number of jobs in the topic.
func TestAPageReadsOnlyItsOwnJobs(t *testing.T) {
	jobs := *jobsFlag
	r := newRig(t, Options{MemTableBytes: 8 << 20, CacheBytes: 64 << 20})
	const step, far = 1000, int64(1e12)
	for n := 0; n < jobs; n += step {
		ops := make([]*jobpb.Op, step)
		for i := range ops {
			// Half of them ready, with 8 priorities.
			a := &jobpb.Add{Topic: "t", Id: fmt.Sprintf("%07d", n+i), Priority: uint32(i % 16)}
			if i%2 == 1 {
				a.DueMs = far + int64(n+i)
			}
			ops[i] = opAdd(a)
		}
		r.now += 10
		r.do(ops...)
	}
	dead := r.one(opReserve(1000, "t"))
	for _, j := range dead.Jobs {
		r.do(opBury(&jobpb.Bury{Ref: bySeq(j.Seq)}))
	}
	for range 9 {
		r.one(opReserve(1000, "t"))
	}

	const page = 50
	middle := far + int64(jobs/2)
	for name, q := range map[string]*jobpb.JobQuery{
		"any":              {},
		"delayed":          {State: jobpb.State_STATE_DELAYED},
		"ready":            {State: jobpb.State_STATE_READY},
		"reserved":         {State: jobpb.State_STATE_RESERVED},
		"dead":             {State: jobpb.State_STATE_DEAD},
		"due in a range":   {State: jobpb.State_STATE_DELAYED, Filter: &jobpb.Filter{DueFromMs: middle, DueToMs: middle + 10_000}},
		"by id":            {Filter: &jobpb.Filter{IdPrefix: "00"}},
		"behind a place":   {After: &jobpb.JobMark{State: jobpb.State_STATE_DELAYED, Place: &jobpb.Place{Instant: middle}}},
		"behind an id":     {Filter: &jobpb.Filter{IdPrefix: "00"}, After: &jobpb.JobMark{Id: "0009"}},
		"died in a range":  {State: jobpb.State_STATE_DEAD, Filter: &jobpb.Filter{DiedFromMs: 1}},
		"ready and past":   {State: jobpb.State_STATE_READY, Filter: &jobpb.Filter{DueToMs: far}},
		"reserved by text": {State: jobpb.State_STATE_RESERVED, Filter: &jobpb.Filter{DueFromMs: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			q.Topic, q.Max = "t", page
			got, scanned := r.listed(q)
			require.Equal(t, page, len(got.Jobs))
			require.NotNil(t, got.Next)
			require.LessOrEqual(t, scanned, page+1, "one skip to the beginning of a range")
		})
	}
	// A range of ready jobs takes two skips for each priority.
	got, scanned := r.listed(&jobpb.JobQuery{Topic: "t", Max: 1000, State: jobpb.State_STATE_READY, Filter: &jobpb.Filter{DueFromMs: r.now - 5, DueToMs: r.now + 1}})
	require.Positive(t, len(got.Jobs))
	require.Nil(t, got.Next)
	require.LessOrEqual(t, scanned, len(got.Jobs)+2*8)
}

// With a filter that has no index, a page ends at the limit of entries.
func TestAPageEndsAtTheScanLimit(t *testing.T) {
	r := newRig(t, Options{})
	for range (job.MaxListScan + 500) / 500 {
		ops := make([]*jobpb.Op, 500)
		for i := range ops {
			ops[i] = opAdd(&jobpb.Add{Topic: "t"})
		}
		r.do(ops...)
	}
	q := &jobpb.JobQuery{Topic: "t", Max: 5, Filter: &jobpb.Filter{Reason: "never said"}}
	page, scanned := r.listed(q)
	require.Equal(t, job.MaxListScan, scanned)
	require.Empty(t, page.Jobs)
	require.NotNil(t, page.Next)
	q.After = page.Next
	page, scanned = r.listed(q)
	require.Equal(t, 500, scanned)
	require.Empty(t, page.Jobs)
	require.Nil(t, page.Next)
}

func TestAPageIsBoundedInBytes(t *testing.T) {
	r := newRig(t, Options{MemTableBytes: 8 << 20})
	body := make([]byte, 1<<20)
	for range 10 {
		r.do(opAdd(&jobpb.Add{Topic: "t", Body: body}))
	}
	page, _ := r.listed(&jobpb.JobQuery{Topic: "t", Max: 1000, Body: true})
	require.Len(t, page.Jobs, 4)
	require.NotNil(t, page.Next)
	page, _ = r.listed(&jobpb.JobQuery{Topic: "t", Max: 1000})
	require.Len(t, page.Jobs, 10)
	require.Nil(t, page.Next)
	require.Empty(t, page.Jobs[0].Body)
}

// byID returns the seqs of the jobs with some ids.
func (r *rig) byID(body bool, ids ...string) (seqs []uint64, jobs []*jobpb.Job) {
	r.t.Helper()
	v := r.m.View()
	defer v.Close()
	jobs, err := v.JobsByID(&jobpb.JobsByID{Ids: ids, Body: body})
	require.NoError(r.t, err)
	for _, j := range jobs {
		seqs = append(seqs, j.Seq)
	}
	return seqs, jobs
}

func TestJobsByIDAreInTheOrderOfTheIDs(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Topic: "t", Id: "a", Body: []byte("A")}), opAdd(&jobpb.Add{Topic: "u", Body: []byte("B")}), opAdd(&jobpb.Add{Topic: "t", Id: "c"}))
	for name, c := range map[string]struct {
		ids  []string
		want []uint64
	}{
		"order of the ids":      {[]string{"c", "a"}, []uint64{3, 1}},
		"missing ones":          {[]string{"x", "a", "y"}, []uint64{0, 1, 0}},
		"one twice":             {[]string{"a", "a"}, []uint64{1, 1}},
		"the server's id":       {[]string{"$0-2", "a"}, []uint64{2, 1}},
		"a server's id of none": {[]string{"$0-1", "$0-9", "$1-2", "$x"}, []uint64{0, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			seqs, _ := r.byID(true, c.ids...)
			require.Equal(t, c.want, seqs)
		})
	}
	_, jobs := r.byID(true, "a", "$0-2")
	require.Equal(t, "A", string(jobs[0].Body))
	require.Equal(t, "u", jobs[1].Topic)
	_, jobs = r.byID(false, "a")
	require.Empty(t, jobs[0].Body)
}

func TestJobsByIDAreBoundedInBytes(t *testing.T) {
	r := newRig(t, Options{MemTableBytes: 8 << 20})
	body := make([]byte, 1<<20)
	var ids []string
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		r.do(opAdd(&jobpb.Add{Topic: "t", Id: id, Body: body}))
		ids = append(ids, id)
	}
	seqs, _ := r.byID(true, ids...)
	require.Equal(t, []uint64{1, 2, 3, 4}, seqs)
	seqs, _ = r.byID(false, ids...)
	require.Len(t, seqs, 6)
	r.do(opAdd(&jobpb.Add{Topic: "t", Id: "large", Body: make([]byte, job.HardMaxBodyBytes)}))
	seqs, _ = r.byID(true, "large", "a")
	require.Equal(t, []uint64{7}, seqs, "there is always one")
	v := r.m.View()
	defer v.Close()
	_, err := v.JobsByID(&jobpb.JobsByID{Ids: make([]string, job.MaxBatch+1)})
	require.ErrorContains(t, err, "ids has 1001 items")
}
