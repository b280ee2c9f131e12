package fsm

import (
	"tarry/job"
	"tarry/job/jobpb"
)

// URLs of jobs. A job may have a push_url where its topic's push has job_urls. That is
// checked when the job is added, changed or moved to another topic. The topic's settings
// may change later: then the leader posts such a job nowhere, and says why.

// checkPushURL returns an error unless a job with that push_url, or none, may come into a
// topic with the settings.
func checkPushURL(topic string, s *jobpb.TopicSettings, url string) error {
	push := s.GetPush()
	switch {
	case url == "" && (push == nil || push.Url != ""):
		return nil
	case url == "":
		return job.Invalid("push_url", "is missing; the push of topic %.40q has no url, so each of its jobs needs one", topic)
	case push == nil:
		return job.Invalid("push_url", "is not permitted in topic %.40q, which has no push; its settings need push with job_urls", topic)
	case !push.JobUrls:
		return job.Invalid("push_url", "is not permitted in topic %.40q, whose push does not have job_urls", topic)
	}
	return nil
}

// checkTarget refuses to move a job of t to the topic of that name if it may not come into
// it, or the caller may not bring it there.
func (x *tx) checkTarget(t *topic, name string, rec *record, r *jobpb.Result) (ok bool, err error) {
	s := x.settingsOf(name, x.m.topics[name])
	if t.name == name || s.GetPush() == nil && !rec.spec.hasPushURL() {
		return true, nil
	}
	if !x.mayEnter(name, rec.spec.hasPushURL(), r) {
		return false, nil
	}
	options, err := rec.spec.decodeOptions()
	if err != nil {
		return false, err
	}
	if err := checkPushURL(name, s, options.GetPushUrl()); err != nil {
		return false, x.refuseInvalid(err, r)
	}
	return true, nil
}

// checkTargetOfAll refuses to move several jobs of t to the topic of that name if any job
// of t may not come into it, or the caller may not bring it there. It reads no job.
func (x *tx) checkTargetOfAll(t *topic, name string, r *jobpb.Result) (ok bool) {
	push := x.settingsOf(name, x.m.topics[name]).GetPush()
	switch live := t.jobs() - t.counts[listEnded]; {
	case t.name == name:
	case !x.mayEnter(name, t.pushURLs > 0, r):
		return false
	case t.pushURLs > 0 && !push.GetJobUrls():
		_ = x.refuseInvalid(job.Invalid("push_url", "is not permitted in topic %.40q, which has no push with job_urls; jobs of topic %.40q that have one: %d", name, t.name, t.pushURLs), r)
		return false
	case t.pushURLs < live && push != nil && push.Url == "":
		_ = x.refuseInvalid(job.Invalid("push_url", "is missing; the push of topic %.40q has no url, so each of its jobs needs one; jobs of topic %.40q without: %d", name, t.name, live-t.pushURLs), r)
		return false
	}
	return true
}
