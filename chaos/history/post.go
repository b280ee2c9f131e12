package history

import (
	"regexp"
	"slices"
	"time"
)

// Topics with a target: the leader posts their jobs to it. A post is a Deliver
// that the target recorded. It has the attempt, not the generation. Without kicks and
// other consumers the two are the same. The target's answer may finish the job or not,
// because no call was acknowledged.

// Post is what a target knows of a delivery that was posted to it.
type Post struct {
	Sent int64 // when the node says that it posted; microseconds, cut to seconds

	Status     int           `json:",omitempty"` // of the answer; 0: there was none
	Answered   int64         `json:",omitempty"` // when the answer began; 0 without one
	RetryAfter time.Duration `json:",omitempty"` // that the answer asks for
	Reason     string        `json:",omitempty"` // as which the job is to keep the answer; empty for 2xx
	// Read: the node has certainly read the answer, for it used the connection
	// again.
	Read bool `json:",omitempty"`

	Flaw string `json:",omitempty"` // what is wrong with the post itself
}

// taken reports whether the answer finishes the job.
func (p *Post) taken() bool { return p.Status/100 == 2 }

// takePosts converts posts to deliveries with the weakest certain bounds: the
// reservation began between the add, or the due instant, and the arrival, and it
// lasts for its time from the due instant on.
func (s *jobHistory) takePosts() {
	first, _ := s.span()
	var seq uint64 // topics with a target retain their jobs, so there is one
	for _, ops := range [][]*Op{s.adds, s.gets} {
		for _, op := range ops {
			if op.Outcome == OK {
				seq = max(seq, op.Seq)
			}
		}
	}
	for _, d := range s.deliveries {
		if d.Post == nil {
			continue
		}
		d.Seq, d.Generation = seq, uint64(d.Attempts)
		d.ReservedUntil = d.Due + d.TTR.Microseconds()
		d.Invoke = min(max(first, d.Due-s.options.furthest()), d.Complete)
		s.takeAnswer(d)
	}
}

// takeAnswer adds what the leader may do after a post. It finishes the job only
// after it has read a 2xx. It may count the attempt as failed before the post arrives,
// after a timeout.
func (s *jobHistory) takeAnswer(d *Op) {
	p := d.Post
	attempt := Op{Outcome: Unknown, Client: d.Client, ID: d.ID, Topic: d.Topic, Seq: d.Seq, Generation: d.Generation}
	if p.taken() {
		finish := attempt
		finish.Kind, finish.Invoke, finish.Complete = Finish, p.Answered, p.Answered
		s.take(&finish)
		if p.Read {
			return
		}
	}
	release := attempt
	release.Kind, release.Invoke = Release, min(max(d.Invoke, p.Sent), d.Complete)
	if p.Read {
		release.Invoke, release.Delay = p.Answered, p.RetryAfter
	}
	if release.Delay == 0 && s.backoff(d.Attempts) == 0 {
		release.Delay = leastPushWait(d.Attempts)
	}
	if asked := p.RetryAfter; asked > 0 && !p.Read {
		release.Delay = min(asked, time.Duration(s.releaseWait(&release, d.Attempts))*time.Microsecond) // it may have been read
	}
	release.Complete = release.Invoke
	s.take(&release)
}

// leastPushWait is the wait after a post that failed, where neither the job nor
// its topic has a backoff: a second, twice as long each time, less a tenth.
func leastPushWait(attempt int) time.Duration {
	return 900 * time.Millisecond << min(max(attempt-1, 0), 8)
}

// checkPosts counts the posts and looks at each by itself.
func checkPosts(ops []Op, r *Report) {
	for i := range ops {
		p := ops[i].Post
		if p == nil {
			continue
		}
		if r.Posts++; !p.taken() {
			r.RefusedPosts++
		}
		if p.Flaw != "" {
			r.Violate("push", ops[i].ID, "attempt %d was posted with %s", ops[i].Attempts, p.Flaw)
		}
	}
}

// answered is an error that says what a target answered.
var answered = regexp.MustCompile(`^push: \d`)

// manyAttempts are more than can be lost with their leaders, each before its post:
// a lost one takes ten seconds and more.
const manyAttempts = 3

// checkPushed judges what reads say of how posts failed.
func (s *jobHistory) checkPushed() {
	if !s.pushed {
		return
	}
	for _, g := range s.gets {
		if g.Outcome != OK {
			continue
		}
		told := slices.ContainsFunc(s.deliveries, func(d *Op) bool { return d.Post != nil && d.Post.Reason == g.Reason })
		if answered.MatchString(g.Reason) && !told {
			s.report.Violate("push", s.id, "its last error is %q, which the target never answered", g.Reason)
		}
		if g.State == "dead" && g.Reason == "" && g.Attempts >= manyAttempts && len(s.deliveries) == 0 {
			s.report.Violate("push", s.id, "it died after %d attempts and was never posted", g.Attempts)
		}
	}
}

// tried checks the number of attempts in a read of a job with a target. Earlier posts
// have no larger numbers, and later ones have larger numbers. The exception is an
// attempt in progress: its number may be taken back.
func (m jobModel) tried(c call) (jobModel, bool) {
	n := uint64(c.Attempts)
	switch {
	case !c.job.pushed || c.State == Gone:
		return m, true
	case m.gen > n, c.State == "finished" && m.gen < n, c.State == "dead" && m.limit > c.Attempts:
		return m, false
	case c.State != "reserved":
		m.gen = n
	}
	return m, true
}
