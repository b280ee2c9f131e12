package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

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
