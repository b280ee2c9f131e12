package fsm

import (
	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

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
		_ = x.refuseInvalid(job.Invalid("push_url", "is not permitted in topic %.40q, which has no push with job_urls; jobs of topic %.40q that have one: %d", name, t.name, t.PushURLs), r)
		return false
	case t.PushURLs < live && push != nil && push.Url == "":
		_ = x.refuseInvalid(job.Invalid("push_url", "is missing; the push of topic %.40q has no url, so each of its jobs needs one; jobs of topic %.40q without: %d", name, t.name, live-t.PushURLs), r)
		return false
	}
	return true
}
