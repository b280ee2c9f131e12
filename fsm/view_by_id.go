package fsm

import (
	"github.com/cockroachdb/pebble/v2"

	"tarry/job"
	"tarry/job/jobpb"
)

// JobsByID returns the jobs with the first of the ids, in their order, as Job does but
// without their histories. An empty job stands for an id that no job has. It ends, after at
// least one, where a page of a listing would (lister.full).
func (v *View) JobsByID(q *jobpb.JobsByID) (jobs []*jobpb.Job, err error) {
	if err := job.CheckJobsByID(q); err != nil {
		return nil, err
	}
	ids := q.Ids
	err = v.read(func(r pebble.Reader) error {
		m, err := readMeta(r)
		if err != nil {
			return err
		}
		l := &lister{view: v, r: r, q: &jobpb.JobQuery{Max: uint32(len(ids)), Body: q.Body}, clockMS: m.maxClock(), page: &jobpb.JobPage{}}
		for _, id := range ids {
			if l.full() {
				break
			}
			j, err := l.find(id)
			if err != nil {
				return err
			}
			jobs = append(jobs, j)
		}
		return nil
	})
	return jobs, err
}

// find adds the job with an id to the page and returns it; an empty one if there is none.
func (l *lister) find(id string) (*jobpb.Job, error) {
	none := &jobpb.Job{}
	seq, fromServer, err := findID(l.r, l.view.shard, id, nil)
	if err != nil || seq == 0 {
		return none, err
	}
	rec, err := readJob(l.r, seq, l.q.Body)
	if err != nil || rec == nil {
		return none, err
	}
	if fromServer && rec.spec.id != "" {
		return none, nil // it has an id of its own
	}
	t, err := l.topic(rec.topic())
	if err != nil {
		return none, err
	}
	list, err := listOf(l.r, l.clockMS, rec)
	if err != nil {
		return none, err
	}
	if err := l.add(rec, list, t.name); err != nil {
		return none, err
	}
	return l.page.Jobs[len(l.page.Jobs)-1], nil
}
