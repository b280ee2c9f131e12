package api

import (
	"context"
	"time"

	"tarry/api/access"
	"tarry/api/httpx"
	"tarry/api/wire"
	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

func (s *server) reserve(x *call) error {
	var q wire.ReserveRequest
	if err := x.decode(maxSmallRequest, &q); err != nil {
		return err
	}
	r, wait, err := q.Check()
	if err != nil {
		return err
	}
	if q.Finish.Set {
		f, err := finishesOf(q.Finish.V)
		if err != nil {
			return err
		}
		return s.finishAndReserve(x, f, r, wait)
	}
	return s.handOut(x, r, wait, func(jobs []*jobpb.Reserved) {
		x.json.success()
		objects(&x.json, "jobs", jobs, x.json.reserved)
		x.json.endObject()
	})
}

// reserved adds the fields of a reserved job.
func (w *writer) reserved(j *jobpb.Reserved) {
	w.text("id", j.Id)
	w.number("seq", j.Seq)
	w.text("topic", j.Topic)
	w.text("token", job.TokenOf(j).String())
	w.number("attempts", uint64(j.Attempts))
	w.number("priority", uint64(j.Priority))
	w.timestamp("due_at", j.DueMs)
	w.timestamp("reserved_until", j.ReservedUntilMs)
	w.seconds("ttr", j.TtrMs)
	w.headers(j.Options)
	w.pushURL(j.Options)
	w.body("body", j.BodyKind, j.Body)
}

// handOut reserves jobs and sends the response. It gives back at once the jobs that the
// client did not get because it hung up first.
func (s *server) handOut(x *call, r *jobpb.Reserve, wait time.Duration, write func([]*jobpb.Reserved)) error {
	jobs, err := s.await(x, r, wait)
	if err == nil {
		err = s.hold(x, jobs)
	}
	if err != nil {
		return err
	}
	return s.sendJobs(x, jobs, write)
}

// hold checks that the client is still there and claims memory for the response. If it
// fails, it has given the jobs back.
func (s *server) hold(x *call, jobs []*jobpb.Reserved) error {
	if len(jobs) == 0 {
		return nil
	}
	err := x.r.Context().Err()
	if err == nil {
		err = x.claimAnswer(jobs)
	}
	if err != nil {
		s.giveBack(x, jobs)
	}
	return err
}

// sendJobs sends the response that write makes. It gives the jobs back if the client did not
// get it.
func (s *server) sendJobs(x *call, jobs []*jobpb.Reserved, write func([]*jobpb.Reserved)) error {
	write(jobs)
	if len(jobs) == 0 {
		return nil
	}
	if err := x.sendNow(); err != nil {
		s.giveBack(x, jobs)
	}
	return nil
}

// claimAnswer claims memory for a response, which stays in memory until a slow client has
// read it.
func (x *call) claimAnswer(jobs []*jobpb.Reserved) error {
	return x.claim(answerBytes(jobs))
}

func answerBytes(jobs []*jobpb.Reserved) (n int64) {
	for _, j := range jobs {
		n += int64(len(j.Body)) + answerOverhead
	}
	return n
}

// answerOverhead is roughly the size of a job in a response without its body, in bytes.
const answerOverhead = 512

// await reserves. A wait that began before the node drains, and is cut short by it, found
// nothing. Later ones fail with not_applied, so that consumers go to another node instead
// of retrying here in a loop.
func (s *server) await(x *call, r *jobpb.Reserve, wait time.Duration) ([]*jobpb.Reserved, error) {
	ctx, cancel := x.timeout(wait + s.Timeout)
	defer cancel()
	if wait > 0 {
		place, err := s.Access.Wait(ctx)
		if err != nil {
			return nil, err
		}
		defer place.End()
	}
	ctx, stop := s.Access.WhileAllowed(ctx, auth.Consume, r.Topics)
	defer stop()
	before := s.Draining()
	jobs, err := s.Queue.Reserve(ctx, r, wait)
	if err != nil && job.CodeOf(err) != job.CodeForbidden && access.Revoked(ctx) {
		return nil, access.NotAnyMore()
	}
	if err != nil && !before && s.Draining() && job.CodeOf(err) == job.CodeNotApplied {
		return nil, nil
	}
	return jobs, err
}

// sendNow sends and flushes the response, so that the caller learns of a broken
// connection.
func (x *call) sendNow() error {
	if err := x.send(); err != nil {
		return err
	}
	return httpx.Flush(x.w)
}

// giveBack releases jobs that no consumer received, without counting the attempt. If that
// fails, they become ready when their reservations expire.
func (s *server) giveBack(x *call, jobs []*jobpb.Reserved) {
	ops := make([]*jobpb.Op, len(jobs))
	for i, j := range jobs {
		ops[i] = &jobpb.Op{Kind: &jobpb.Op_Release{Release: oplog.GiveBack(j, 0)}}
	}
	if err := s.doItself(x, ops); err != nil {
		s.Logger.Warn("jobs of a consumer that hung up could not be given back; they are ready again when their leases expire",
			"jobs", len(jobs), "first", jobs[0].Id, "error", err)
	}
}

// doItself does what the node wants after the end of a call, whose token may have been revoked meanwhile.
func (s *server) doItself(x *call, ops []*jobpb.Op) error {
	ctx := auth.NewContext(context.WithoutCancel(x.r.Context()), auth.System())
	ctx, cancel := context.WithTimeout(ctx, giveBackTimeout)
	defer cancel()
	results, err := doOps(ctx, s.Queue, ops)
	if err == nil {
		err = noResult(results)
	}
	return err
}

const giveBackTimeout = 5 * time.Second

// finishes are those of one reserve, and what became of them.
type finishes struct {
	n       int // as many as the client gave
	ops     []*jobpb.Finish
	refused map[int]error // those that are in no op, by their place
	results []*jobpb.Result
}

// finishesOf makes the operations. An error is about the whole call.
func finishesOf(items []wire.FinishItem) (*finishes, error) {
	f := &finishes{n: len(items), refused: map[int]error{}}
	for i := range items {
		op, err := verbFinish.make(&wire.ChangeItem{ID: items[i].ID, Token: items[i].Token})
		if err == nil {
			err = check(op)
		}
		switch {
		case err == nil:
			f.ops = append(f.ops, op.GetFinish())
		case job.CodeOf(err) == job.CodeInvalid:
			return nil, job.InItem("finish", i, err)
		default:
			f.refused[i] = job.InItem("finish", i, err)
		}
	}
	return f, nil
}

// finishAndReserve finishes jobs and reserves others. Once the finishes are applied the call
// succeeds, so that their results are never lost: if the reserve fails then, it has found
// nothing, and the client's next one will fail.
func (s *server) finishAndReserve(x *call, f *finishes, r *jobpb.Reserve, wait time.Duration) error {
	jobs, err := s.finishFirst(x, f, r, wait > 0)
	if err != nil {
		return err
	}
	if len(jobs) == 0 && !s.Draining() && (wait > 0 || len(f.ops) == 0) {
		if jobs, err = s.await(x, r, wait); err != nil && len(f.ops) == 0 {
			return err
		}
	}
	if err := s.hold(x, jobs); err != nil {
		jobs = nil
	}
	return s.sendJobs(x, jobs, func(jobs []*jobpb.Reserved) {
		x.json.beginObject()
		s.resultList(x, "finished", f.n, f.refused, f.results, (*writer).changed)
		objects(&x.json, "jobs", jobs, x.json.reserved)
		x.json.endObject()
	})
}

// finishFirst applies the finishes, and reserves in the same entry. A node that drains
// hands out nothing more.
func (s *server) finishFirst(x *call, f *finishes, r *jobpb.Reserve, waits bool) (jobs []*jobpb.Reserved, err error) {
	switch {
	case len(f.ops) == 0:
		return nil, nil
	case s.Draining():
		ops := make([]*jobpb.Op, len(f.ops))
		for i, op := range f.ops {
			ops[i] = &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: op}}
		}
		f.results, err = s.do(x, ops)
		return nil, err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	f.results, jobs, err = s.Queue.FinishAndReserve(ctx, f.ops, r, waits)
	return jobs, err
}
