package api

import (
	"fmt"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

// getManyPath is the path of a POST that only reads.
const getManyPath = "/v1/get"

// getMany handles POST /v1/get. It has one result for each id, in order: the job, or why it
// is not there.
func (s *server) getMany(x *call) error {
	var q wire.GetRequest
	if err := x.decode(maxSmallRequest, &q); err != nil {
		return err
	}
	if err := wire.CheckItems("ids", len(q.IDs.V)); err != nil {
		return err
	}
	body, err := wire.WithBodies(x.r.URL.Query(), true)
	if err != nil {
		return err
	}
	failed := make([]error, len(q.IDs.V))
	var ids []string // the valid ones
	for i, id := range q.IDs.V {
		if failed[i] = job.CheckRefID(fmt.Sprintf("ids[%d]", i), id); failed[i] == nil {
			ids = append(ids, id)
		}
	}
	jobs, err := s.jobsByID(x, ids, body)
	if err != nil {
		return err
	}
	found := make([]*jobpb.Job, len(q.IDs.V))
	all := true
	for i, id := range q.IDs.V {
		switch {
		case failed[i] != nil:
		case len(jobs) == 0:
			failed[i] = job.Errorf(job.CodeReplyFull, "the reply had no room for this job; ask for it again")
		case jobs[0].Seq == 0:
			failed[i], jobs = job.NoSuchJob(id), jobs[1:]
		default:
			found[i], jobs = jobs[0], jobs[1:]
		}
		all = all && failed[i] == nil
	}
	x.json.beginObject()
	x.json.boolean("success", all)
	x.json.beginList("results")
	for i, err := range failed {
		x.json.beginObject()
		if err != nil {
			x.json.failure(asError(err))
		} else {
			x.json.boolean("success", true)
			x.json.job(found[i])
			if body {
				x.json.body("body", found[i].BodyKind, found[i].Body)
			}
		}
		x.json.endObject()
	}
	x.json.endList()
	x.json.endObject()
	return nil
}

// jobsByID reads the jobs with the first of the ids, and claims memory for a response with
// them.
func (s *server) jobsByID(x *call, ids []string, body bool) ([]*jobpb.Job, error) {
	stale, err := x.stale()
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	jobs, err := s.reads.JobsByID(ctx, ids, body, stale)
	if err != nil {
		return nil, err
	}
	var room int64
	for _, j := range jobs {
		room += jobRoom(j)
	}
	return jobs, x.claim(room)
}
