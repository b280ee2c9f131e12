package fsm

import (
	"slices"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// moveJobs moves jobs of a topic, or one job, to another topic. Retained jobs stay.
func (x *tx) moveJobs(op *jobpb.MoveJobs, r *jobpb.Result) error {
	if op.Ref != nil {
		return x.moveOne(op, r)
	}
	t := x.m.topics[op.Topic]
	wanted := func(list record.List) bool {
		return len(op.States) == 0 || slices.ContainsFunc(op.States, func(s jobpb.State) bool { return record.ListOfState(s) == list })
	}
	var left uint64
	for list := record.ListDelayed; t != nil && list <= record.ListDead; list++ {
		if wanted(list) {
			left += t.Counts[list]
		}
	}
	if left == 0 {
		return nil
	}
	if !x.checkTargetOfAll(t, op.To, r) {
		return nil
	}
	if !x.roomForAll(t, left, op.To, r) {
		return nil
	}
	target := x.targetTopic(op.To, r)
	if target == nil {
		return nil
	}
	if left == t.Jobs() && target.Jobs() == 0 && left < 1<<32 && record.SameIndex(t.settings, target.settings) {
		x.swapJobs(t, target)
		r.Count = uint32(left)
		return nil
	}
	bytes := 0
	for list := record.ListDelayed; list <= record.ListDead; list++ {
		for wanted(list) && t.Counts[list] > 0 && r.Count < op.Max && bytes < sweepBytes {
			p, _, err := x.head(t, list)
			if err != nil {
				return err
			}
			rec, err := x.jobIn(t, list, p.Seq, false)
			if err != nil {
				return err
			}
			if err := x.relocate(t, target, rec, list); err != nil {
				return err
			}
			bytes += rec.BodyLen
			r.Count++
			left--
		}
	}
	r.More = left > 0
	return nil
}

// moveOne moves the job that op names, unless it is there already.
func (x *tx) moveOne(op *jobpb.MoveJobs, r *jobpb.Result) error {
	rec, t, list, err := x.findListed(op.Ref, r)
	if rec == nil || err != nil {
		return err
	}
	if ok, err := x.checkTarget(t, op.To, rec, r); !ok || err != nil {
		return err
	}
	if t.name != op.To {
		if !x.roomFor(rec, t, op.To, r) {
			return nil
		}
		target := x.targetTopic(op.To, r)
		if target == nil {
			return nil
		}
		if err := x.relocate(t, target, rec, list); err != nil {
			return err
		}
	}
	r.State, r.Revision = rec.State(list), rec.Status.Revision
	return nil
}

// targetTopic returns the topic that jobs move to, and makes it if needed; nil: the
// operation was refused. The caller adds a job to it.
func (x *tx) targetTopic(name string, r *jobpb.Result) *topic {
	if t := x.m.topics[name]; t != nil {
		return t
	}
	if x.topicsAtLimit() {
		_ = x.refuseTopic(name, r)
		return nil
	}
	return x.newTopic(name)
}

// relocate moves a job to the same list of another topic. A dead job goes behind those
// that died there.
func (x *tx) relocate(t, target *topic, rec *record.Job, list record.List) error {
	return x.moveTo(t, target, rec, list, list, func(s *record.Status) {
		if list == record.ListDead {
			s.Rank = target.Rank
			target.Rank++
		}
	})
}

// swapJobs swaps the jobs of two topics by swapping the topics' numbers, without a change
// of any job. Totals, pause and settings stay with the names.
func (x *tx) swapJobs(t, u *topic) {
	// The heap orders by number.
	x.m.due.set(t, 0)
	x.m.due.set(u, 0)
	jobs, bytes := int64(t.Jobs())-int64(u.Jobs()), int64(t.Bytes)-int64(u.Bytes)
	x.hold(t, -jobs, -bytes)
	x.hold(u, jobs, bytes)
	t.Number, u.Number = u.Number, t.Number
	t.Counts, u.Counts = u.Counts, t.Counts
	t.ExpiryIndexed, u.ExpiryIndexed = u.ExpiryIndexed, t.ExpiryIndexed
	t.Heads, u.Heads = u.Heads, t.Heads
	t.PushURLs, u.PushURLs = u.PushURLs, t.PushURLs
	t.Rank, u.Rank = u.Rank, t.Rank
	t.Urgent, u.Urgent = u.Urgent, t.Urgent
	t.windows, u.windows = u.windows, t.windows
	for _, one := range [...]*topic{t, u} {
		x.m.byNumber[one.Number] = one
		x.key = record.AppendNumberKey(x.key[:0], one.Number)
		must(x.batch.Set(x.key, []byte(one.name), nil))
		if one.Jobs() == 0 {
			x.emptied(one)
		}
		x.touch(one)
	}
}

// checkTarget refuses to move a job of t to the topic of that name if it may not come into
// it, or the caller may not bring it there.
func (x *tx) checkTarget(t *topic, name string, rec *record.Job, r *jobpb.Result) (ok bool, err error) {
	s := x.settingsOf(name, x.m.topics[name])
	if t.name == name || s.GetPush() == nil && !rec.Spec.HasPushURL() {
		return true, nil
	}
	if !x.mayEnter(name, rec.Spec.HasPushURL(), r) {
		return false, nil
	}
	options, err := rec.Spec.DecodeOptions()
	if err != nil {
		return false, err
	}
	if err := record.CheckPushURL(name, s, options.GetPushUrl()); err != nil {
		return false, x.refuseInvalid(err, r)
	}
	return true, nil
}

// checkTargetOfAll refuses to move several jobs of t to the topic of that name if any job
// of t may not come into it, or the caller may not bring it there. It reads no job.
func (x *tx) checkTargetOfAll(t *topic, name string, r *jobpb.Result) (ok bool) {
	push := x.settingsOf(name, x.m.topics[name]).GetPush()
	switch live := t.Jobs() - t.Counts[record.ListEnded]; {
	case t.name == name:
	case !x.mayEnter(name, t.PushURLs > 0, r):
		return false
	case t.PushURLs > 0 && !push.GetJobUrls():
		_ = x.refuseInvalid(job.Invalid("push_url",
			"is not permitted in topic %.40q, which has no push with job_urls; jobs of topic %.40q that have one: %d", name, t.name, t.PushURLs), r)
		return false
	case t.PushURLs < live && push != nil && push.Url == "":
		_ = x.refuseInvalid(job.Invalid("push_url",
			"is missing; the push of topic %.40q has no url, so each of its jobs needs one; jobs of topic %.40q without: %d",
			name, t.name, live-t.PushURLs), r)
		return false
	}
	return true
}
