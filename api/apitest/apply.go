package apitest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"tarry/job"
	"tarry/job/jobpb"
)

// CloneOf copies the job that a client may see.
func (r *record) CloneOf() *jobpb.Job { return proto.Clone(&r.Job).(*jobpb.Job) }

func now() int64 { return time.Now().UnixMilli() }

func (q *Queue) apply(op *jobpb.Op) *jobpb.Result {
	switch k := op.Kind.(type) {
	case *jobpb.Op_Add:
		return q.add(k.Add)
	case *jobpb.Op_Finish:
		return q.remove(k.Finish.Ref, true)
	case *jobpb.Op_Delete:
		return q.remove(k.Delete.Ref, false)
	case *jobpb.Op_Release:
		return q.release(k.Release)
	case *jobpb.Op_Touch:
		return q.touch(k.Touch)
	case *jobpb.Op_Bury:
		return q.bury(k.Bury)
	case *jobpb.Op_Kick:
		return q.kick(k.Kick.Ref)
	case *jobpb.Op_KickTopic:
		return q.kickTopic(k.KickTopic)
	default:
		return refuse(jobpb.Code_INVALID, "operation is unknown to the test queue")
	}
}

func refuse(code jobpb.Code, format string, args ...any) *jobpb.Result {
	return &jobpb.Result{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (j *record) result() *jobpb.Result {
	return &jobpb.Result{Id: j.Id, Seq: j.Seq, State: j.State, DueMs: j.DueMs}
}

// advance moves what is due.
func (q *Queue) advance() {
	t := now()
	for _, j := range q.jobs {
		if j.State == jobpb.State_STATE_DELAYED && j.DueMs <= t {
			j.State = jobpb.State_STATE_READY
		}
		if j.State == jobpb.State_STATE_RESERVED && j.ReservedUntilMs <= t {
			j.Timeouts++
			j.back("time to run exceeded")
		}
	}
}

// back ends a reservation without success.
func (j *record) back(reason string) {
	j.State, j.Reason = jobpb.State_STATE_READY, reason
	if j.MaxAttempts > 0 && j.Attempts >= j.MaxAttempts {
		j.State = jobpb.State_STATE_DEAD
	} else if j.DueMs > now() {
		j.State = jobpb.State_STATE_DELAYED
	}
}

// find looks a job up and checks the fence.
func (q *Queue) find(ref *jobpb.Ref) (*record, *jobpb.Result) {
	for _, j := range q.jobs {
		if (ref.Id != "" && j.Id != ref.Id) || (ref.Seq != 0 && j.Seq != ref.Seq) {
			continue
		}
		if ref.Generation != 0 && (j.State != jobpb.State_STATE_RESERVED || j.generation != ref.Generation) {
			return nil, refuse(jobpb.Code_STALE_TOKEN, "the token's reservation of job %q is over", j.Id)
		}
		return j, nil
	}
	name := fmt.Sprintf("job %q", ref.Id)
	if ref.Id == "" {
		name = fmt.Sprintf("job number %d", ref.Seq)
	}
	return nil, refuse(jobpb.Code_NOT_FOUND, "%s does not exist; it may have been finished or deleted", name)
}

func (q *Queue) findReserved(ref *jobpb.Ref) (*record, *jobpb.Result) {
	j, refusal := q.find(ref)
	if refusal == nil && j.State != jobpb.State_STATE_RESERVED {
		refusal = refuse(jobpb.Code_NOT_RESERVED, "job %q is not reserved", j.Id)
	}
	return j, refusal
}

func (q *Queue) add(a *jobpb.Add) *jobpb.Result {
	if a.Id != "" {
		if j, refusal := q.find(&jobpb.Ref{Id: a.Id}); refusal == nil {
			if j.Topic != a.Topic || !bytes.Equal(j.Body, a.Body) || j.BodyKind != a.BodyKind {
				return refuse(jobpb.Code_ID_CONFLICT, "id %q is taken by a job with another body", j.Id)
			}
			r := j.result()
			r.Existing = true
			return r
		}
	}
	q.lastSeq++
	j := &record{}
	j.Id, j.Seq, j.Topic, j.Body, j.BodyKind = a.Id, q.lastSeq, a.Topic, a.Body, a.BodyKind
	j.Priority, j.TtrMs, j.MaxAttempts, j.DelayMs = a.Priority, a.TtrMs, a.MaxAttempts, a.DelayMs
	if j.Id == "" {
		j.Id = job.ServerID(0, j.Seq)
	}
	j.CreatedMs, j.State = now(), jobpb.State_STATE_DELAYED
	if j.DueMs = a.DueMs; j.DueMs == 0 {
		j.DueMs = j.CreatedMs + a.DelayMs
	}
	if j.DueMs <= j.CreatedMs {
		j.DueMs, j.State = j.CreatedMs, jobpb.State_STATE_READY
	}
	q.jobs[j.Seq] = j
	q.total(a.Topic).Added++
	return j.result()
}

// take reserves the best ready jobs.
func (q *Queue) take(r *jobpb.Reserve) []*jobpb.Reserved {
	var ready []*record
	for _, j := range q.jobs {
		if j.State == jobpb.State_STATE_READY && slices.Contains(r.Topics, j.Topic) {
			ready = append(ready, j)
		}
	}
	slices.SortFunc(ready, func(a, b *record) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.DueMs, b.DueMs), cmp.Compare(a.Seq, b.Seq))
	})
	var jobs []*jobpb.Reserved
	for _, j := range ready[:min(len(ready), int(r.Max))] {
		ttr := cmp.Or(r.TtrMs, j.TtrMs)
		j.State, j.ReservedUntilMs = jobpb.State_STATE_RESERVED, now()+ttr
		j.Attempts++
		j.Reserves++
		j.generation++
		jobs = append(jobs, &jobpb.Reserved{
			Id: j.Id, Seq: j.Seq, Topic: j.Topic, Body: j.Body, BodyKind: j.BodyKind, Generation: j.generation,
			Attempts: j.Attempts, Priority: j.Priority, DueMs: j.DueMs, ReservedUntilMs: j.ReservedUntilMs, TtrMs: j.TtrMs,
		})
	}
	return jobs
}

func (q *Queue) remove(ref *jobpb.Ref, finish bool) *jobpb.Result {
	find := q.find
	if finish {
		find = q.findReserved
	}
	j, refusal := find(ref)
	if refusal != nil {
		return refusal
	}
	delete(q.jobs, j.Seq)
	if finish {
		q.total(j.Topic).Finished++
	} else {
		q.total(j.Topic).Deleted++
	}
	return &jobpb.Result{Id: j.Id, Seq: j.Seq, DueMs: j.DueMs}
}

func (q *Queue) release(r *jobpb.Release) *jobpb.Result {
	j, refusal := q.findReserved(r.Ref)
	if refusal != nil {
		return refusal
	}
	if r.SetPriority {
		j.Priority = r.Priority
	}
	if r.DelayMs > 0 {
		j.DueMs = now() + r.DelayMs
	}
	if r.Undelivered {
		j.Attempts--
	} else {
		j.Releases++
	}
	j.back(r.Reason)
	return j.result()
}

func (q *Queue) touch(t *jobpb.Touch) *jobpb.Result {
	j, refusal := q.findReserved(t.Ref)
	if refusal != nil {
		return refusal
	}
	j.ReservedUntilMs = now() + cmp.Or(t.TtrMs, j.TtrMs)
	r := j.result()
	r.ReservedUntilMs = j.ReservedUntilMs
	return r
}

func (q *Queue) bury(b *jobpb.Bury) *jobpb.Result {
	j, refusal := q.findReserved(b.Ref)
	if refusal != nil {
		return refusal
	}
	if b.SetPriority {
		j.Priority = b.Priority
	}
	j.State, j.Reason = jobpb.State_STATE_DEAD, b.Reason
	j.Buries++
	q.total(j.Topic).Died++
	return j.result()
}

func (q *Queue) kick(ref *jobpb.Ref) *jobpb.Result {
	j, refusal := q.find(ref)
	if refusal != nil {
		return refusal
	}
	if j.State != jobpb.State_STATE_DEAD && j.State != jobpb.State_STATE_DELAYED {
		return refuse(jobpb.Code_NOT_KICKABLE, "job %q is neither dead nor delayed", j.Id)
	}
	if j.State == jobpb.State_STATE_DEAD {
		j.Attempts = 0
	}
	j.State = jobpb.State_STATE_READY
	j.DueMs = min(j.DueMs, now())
	j.Kicks++
	return j.result()
}

func (q *Queue) kickTopic(k *jobpb.KickTopic) *jobpb.Result {
	r := &jobpb.Result{}
	for _, j := range q.jobs {
		if j.Topic == k.Topic && j.State == jobpb.State_STATE_DEAD && r.Count < k.Max {
			q.kick(&jobpb.Ref{Seq: j.Seq})
			r.Count++
		}
	}
	return r
}

func (q *Queue) total(topic string) *jobpb.Topic {
	t := q.topics[topic]
	if t == nil {
		t = &jobpb.Topic{Name: topic}
		q.topics[topic] = t
	}
	return t
}

// count gives a topic's totals with its counts by state.
func (q *Queue) count(topic string) *jobpb.Topic {
	q.advance()
	t := &jobpb.Topic{Name: topic}
	if known := q.topics[topic]; known != nil {
		t = proto.Clone(known).(*jobpb.Topic)
	}
	for _, j := range q.jobs {
		if j.Topic != topic {
			continue
		}
		switch j.State {
		case jobpb.State_STATE_DELAYED:
			t.Delayed++
		case jobpb.State_STATE_READY:
			t.Ready++
		case jobpb.State_STATE_RESERVED:
			t.Reserved++
		case jobpb.State_STATE_DEAD:
			t.Dead++
		}
		if j.State <= jobpb.State_STATE_READY && (t.OldestDueMs == 0 || j.DueMs < t.OldestDueMs) {
			t.OldestDueMs = j.DueMs
		}
	}
	return t
}
