package access

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"tarry/auth"
	"tarry/job"
	"tarry/job/jobpb"
)

// Read implements job.Reader: it shows what the caller may read. A job that it may not read does
// not exist for it. Unless the read may be stale, it is decided by tokens that are as new as the
// state that was read: who was revoked before it began gets nothing, although this node may not
// know it yet.
func (q *Queue) Read(ctx context.Context, r *jobpb.Read, stale bool) (*jobpb.ReadResult, error) {
	if stale {
		return q.read(ctx, r, true)
	}
	for {
		decidedBy := q.checks.source.Auth().Revision
		from := newest{queue: q.queue}
		a, err := (&Queue{queue: &from, checks: q.checks}).read(ctx, r, false)
		if from.revision <= decidedBy {
			return a, err
		}
		if err := q.checks.reach(ctx, from.revision); err != nil {
			return nil, err
		}
		if who, _ := ctx.Value(requestKey{}).(*Request); who != nil && !off(q.checks.State(), 0) && !who.accepted(q.checks.State()) {
			return nil, Unauthorized()
		}
	}
}

// newest keeps the newest revision of the tokens in what was read.
type newest struct {
	queue
	revision uint64
}

func (n *newest) Read(ctx context.Context, r *jobpb.Read, stale bool) (*jobpb.ReadResult, error) {
	a, err := n.queue.Read(ctx, r, stale)
	n.revision = max(n.revision, a.GetAuthRevision())
	return a, err
}

// maxBehind bounds how long a read waits until this node has the tokens that the leader had.
const maxBehind = 5 * time.Second

// reach waits until this node has a revision of the tokens.
func (c *Checks) reach(ctx context.Context, revision uint64) error {
	ctx, cancel := context.WithTimeout(ctx, maxBehind)
	defer cancel()
	for {
		changed := c.source.AuthChanged() // before Auth, to miss no change
		if c.source.Auth().Revision >= revision {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return job.NotApplied("this node does not have the latest tokens yet, so it does not know who may read what; use another node, or try again")
		}
	}
}

// read is Read, decided by the tokens that this node has.
func (q *Queue) read(ctx context.Context, r *jobpb.Read, stale bool) (*jobpb.ReadResult, error) {
	switch r.What.(type) {
	case *jobpb.Read_Token, *jobpb.Read_Tokens: // in every mode
		if err := q.checks.Allow(ctx, auth.Admin, ""); err != nil {
			return nil, err
		}
		return q.queue.Read(ctx, r, stale)
	case *jobpb.Read_Auth, *jobpb.Read_Admission:
		if err := q.checks.Allow(ctx, auth.Observe, ""); err != nil {
			return nil, err
		}
		return q.queue.Read(ctx, r, stale)
	}
	if off(q.checks.State(), 0) {
		return q.queue.Read(ctx, r, stale)
	}
	if ids := r.GetJobsById().GetIds(); len(ids) > 0 {
		if err := q.checks.chargeReads(ctx, len(ids)); err != nil {
			return nil, err
		}
	}
	switch r.What.(type) {
	case *jobpb.Read_Namespace, *jobpb.Read_Namespaces:
		return q.readNamespaces(ctx, r, stale)
	}
	if err := q.checkRead(ctx, r); err != nil {
		return nil, err
	}
	readable := q.checks.readable(ctx)
	if readable != nil {
		if a, done, err := q.readSome(ctx, r, stale, readable); done || err != nil {
			return a, err
		}
	}
	a, err := q.queue.Read(ctx, r, stale)
	if err != nil {
		return nil, err
	}
	q.hide(ctx, a)
	return a, nil
}

// checkRead checks a read that names its topic, or is about all of them.
func (q *Queue) checkRead(ctx context.Context, r *jobpb.Read) error {
	topic, all := "", false
	switch what := r.What.(type) {
	case *jobpb.Read_Peek:
		topic = what.Peek.GetTopic()
	case *jobpb.Read_Topic:
		topic = what.Topic
	case *jobpb.Read_Jobs:
		topic = what.Jobs.GetTopic() // without one it is a search
	case *jobpb.Read_Forecast:
		topic, all = what.Forecast.GetTopic(), true
	case *jobpb.Read_DeadReasons:
		topic, all = what.DeadReasons.GetTopic(), true
	case *jobpb.Read_Job, *jobpb.Read_JobSeq, *jobpb.Read_JobsById, *jobpb.Read_Explain, *jobpb.Read_Schedule,
		*jobpb.Read_Topics, *jobpb.Read_ConfiguredTopics, *jobpb.Read_Totals, *jobpb.Read_Schedules, *jobpb.Read_DueTopics, *jobpb.Read_DeadTopics:
		// Their results are looked at.
	default:
		// A read that this package does not know is only for those who may read everything.
		all = true
	}
	switch {
	case topic != "":
		return q.checks.Allow(ctx, auth.Read, topic)
	case all:
		return q.checks.AllowEverywhere(ctx, auth.Read)
	}
	return nil
}

// readNamespaces shows who may observe the cluster all namespaces, and others those of which they
// may read every topic.
func (q *Queue) readNamespaces(ctx context.Context, r *jobpb.Read, stale bool) (*jobpb.ReadResult, error) {
	a, err := q.queue.Read(ctx, r, stale)
	if err != nil {
		return nil, err
	}
	g, all := q.checks.grants(ctx)
	if all || q.checks.source.Auth().Check(auth.FromContext(ctx), now(), auth.Observe, "") == auth.Allowed {
		return a, nil
	}
	a.Namespaces = slices.DeleteFunc(a.Namespaces, func(n *jobpb.NamespaceUse) bool { return g.OnPrefix(n.Namespace.GetTopicPrefix())&auth.Read == 0 })
	return a, nil
}

// grants returns what a caller may do who may not read all topics; all reports whether it may, or
// nothing is enforced.
func (c *Checks) grants(ctx context.Context) (g *auth.Grants, all bool) {
	s, p := c.source.Auth(), auth.FromContext(ctx)
	if s.Mode() != jobpb.AuthMode_AUTH_ENFORCE || p.IsSystem() {
		return nil, true
	}
	g, d := s.GrantsOf(p, now())
	if d != auth.Allowed {
		return nil, false
	}
	return g, g.AllowOnAll(auth.Read)
}

// readable returns which topics the caller may read; nil: all, or nothing is enforced.
func (c *Checks) readable(ctx context.Context) func(topic string) bool {
	g, all := c.grants(ctx)
	if all {
		return nil
	}
	return func(topic string) bool { return g.On(topic)&auth.Read != 0 }
}

// hide takes out of a result what the caller may not read.
func (q *Queue) hide(ctx context.Context, a *jobpb.ReadResult) {
	if a.Job != nil && q.checks.Allow(ctx, auth.Read, a.Job.Topic) != nil {
		a.Job = nil
	}
	if a.Explanation != nil && q.checks.Allow(ctx, auth.Read, a.Explanation.Topic) != nil {
		a.Explanation = nil
	}
	if a.Schedule != nil && q.checks.Allow(ctx, auth.Read, a.Schedule.Schedule.GetJob().GetTopic()) != nil {
		a.Schedule = nil
	}
	q.hideByID(ctx, a.ById)
}

// hideByID is hide for jobs of which one that does not exist is empty.
func (q *Queue) hideByID(ctx context.Context, jobs []*jobpb.Job) {
	var denied denials
	s, p := q.checks.source.Auth(), auth.FromContext(ctx)
	if off(s, auth.Read) {
		return
	}
	reported := reports(s, auth.Read)
	for i, j := range jobs {
		if j.Seq == 0 {
			continue
		}
		d := s.Check(p, now(), auth.Read, j.Topic)
		if d == auth.Allowed {
			continue
		}
		denied.add(denial{d, auth.Read, reported}, j.Topic)
		if !reported {
			jobs[i] = &jobpb.Job{}
		}
	}
	q.checks.count(ctx, denied)
}

// readSome does the reads that list topics, for a caller that may not read all of them. done
// reports whether r is one of them.
func (q *Queue) readSome(ctx context.Context, r *jobpb.Read, stale bool, readable func(topic string) bool) (a *jobpb.ReadResult, done bool, err error) {
	switch what := r.What.(type) {
	case *jobpb.Read_Topics:
		a, err = q.topics(ctx, what.Topics, stale, readable, func(p *jobpb.Page) *jobpb.Read {
			return &jobpb.Read{What: &jobpb.Read_Topics{Topics: p}}
		})
	case *jobpb.Read_ConfiguredTopics:
		a, err = q.topics(ctx, what.ConfiguredTopics, stale, readable, func(p *jobpb.Page) *jobpb.Read {
			return &jobpb.Read{What: &jobpb.Read_ConfiguredTopics{ConfiguredTopics: p}}
		})
	case *jobpb.Read_Jobs:
		if what.Jobs.GetTopic() != "" {
			return nil, false, nil // checkRead has allowed it
		}
		a, err = q.search(ctx, what.Jobs, stale, readable)
	case *jobpb.Read_Schedules:
		a, err = q.schedules(ctx, what.Schedules, stale, readable)
	case *jobpb.Read_Totals:
		a, err = q.totals(ctx, stale, readable)
	case *jobpb.Read_DueTopics:
		a, err = q.dueTopics(ctx, what.DueTopics, stale, readable)
	case *jobpb.Read_DeadTopics:
		a, err = q.deadTopics(ctx, what.DeadTopics, stale, readable)
	default:
		return nil, false, nil
	}
	return a, true, err
}

// topics reads pages until as many topics as asked for may be shown, or there are no more.
func (q *Queue) topics(ctx context.Context, p *jobpb.Page, stale bool, readable func(topic string) bool, read func(*jobpb.Page) *jobpb.Read) (*jobpb.ReadResult, error) {
	shown, after := &jobpb.ReadResult{}, p.GetAfter()
	for {
		a, err := q.queue.Read(ctx, read(&jobpb.Page{After: after, Max: p.GetMax()}), stale)
		if err != nil {
			return nil, err
		}
		for _, t := range a.Topics {
			if readable(t.Name) {
				shown.Topics = append(shown.Topics, t)
			}
			if after = t.Name; len(shown.Topics) == int(p.GetMax()) {
				return shown, nil
			}
		}
		if len(a.Topics) == 0 || len(a.Topics) < int(p.GetMax()) {
			return shown, nil
		}
	}
}

// searchPages bounds the pages that are read for one search. Each examines job.MaxListScan entries
// at most. All but the first have job.MaxList jobs, however few the caller asks for, because the
// caller learns that there are more hidden jobs than that.
const searchPages = 50

// search lists jobs of all topics for a caller that may not read all of them. The reply depends
// only on jobs that the caller may read: it has a next page only if that has one of them, and
// the mark of that page names one.
func (q *Queue) search(ctx context.Context, query *jobpb.JobQuery, stale bool, readable func(topic string) bool) (*jobpb.ReadResult, error) {
	found, size := &jobpb.JobPage{}, 0
	page := proto.CloneOf(query)
	asked := false // whether what is incomplete is of a topic that the caller may read
	for range searchPages {
		a, err := q.queue.Read(ctx, &jobpb.Read{What: &jobpb.Read_Jobs{Jobs: page}}, stale)
		if notIndexed(query, err) {
			return &jobpb.ReadResult{Jobs: found}, nil // as if only other topics indexed it
		}
		if err != nil {
			return nil, err
		}
		if a.GetJobs().GetIncomplete() && !asked {
			asked = true
			if found.Incomplete, err = q.indexesOne(ctx, query.GetFilter().GetHeaders(), stale, readable); err != nil {
				return nil, err
			}
		}
		for _, j := range a.GetJobs().GetJobs() {
			if !readable(j.Topic) {
				continue
			}
			if n := len(found.Jobs); n == int(query.GetMax()) || size >= job.MaxListBytes {
				found.Next, err = q.markOf(ctx, query, found.Jobs[n-1], stale)
				return &jobpb.ReadResult{Jobs: found}, err
			}
			found.Jobs = append(found.Jobs, j)
			size += len(j.Body)
		}
		if page.After = a.GetJobs().GetNext(); page.After == nil {
			return &jobpb.ReadResult{Jobs: found}, nil
		}
		page.Max = job.MaxList
	}
	return nil, job.Errorf(job.CodeOverloaded, "too many jobs of topics that you may not read match the search; name a topic, or a longer id_prefix")
}

// notIndexed reports whether err is that of a valid search whose headers no topic indexes.
func notIndexed(query *jobpb.JobQuery, err error) bool {
	e := new(job.Error)
	return errors.As(err, &e) && e.Code == job.CodeInvalid && strings.HasPrefix(e.Field, "header.") && job.CheckJobQuery(query) == nil
}

// indexesOne reports whether a topic that the caller may read indexes one of the headers.
func (q *Queue) indexesOne(ctx context.Context, headers []*jobpb.Header, stale bool, readable func(topic string) bool) (bool, error) {
	p := &jobpb.Page{Max: job.MaxList}
	for {
		a, err := q.queue.Read(ctx, &jobpb.Read{What: &jobpb.Read_ConfiguredTopics{ConfiguredTopics: p}}, stale)
		if err != nil {
			return false, err
		}
		for _, t := range a.Topics {
			if p.After = t.Name; readable(t.Name) && indexOf(t, headers) >= 0 {
				return true, nil
			}
		}
		if len(a.Topics) < job.MaxList {
			return false, nil
		}
	}
}

// indexOf returns the first of headers that a topic indexes; -1: none.
func indexOf(t *jobpb.Topic, headers []*jobpb.Header) int {
	indexed := t.GetSettings().GetIndexHeaders()
	return slices.IndexFunc(headers, func(h *jobpb.Header) bool { return slices.Contains(indexed, h.Name) })
}

// markOf returns the mark with which a search goes on behind a job.
func (q *Queue) markOf(ctx context.Context, query *jobpb.JobQuery, j *jobpb.Job, stale bool) (*jobpb.JobMark, error) {
	if !query.GetByHeader() {
		return &jobpb.JobMark{Id: j.Id}, nil
	}
	a, err := q.queue.Read(ctx, &jobpb.Read{What: &jobpb.Read_Topic{Topic: j.Topic}}, stale)
	if err != nil {
		return nil, err
	}
	// Jobs are found by the first of the headers that their topic indexes.
	headers := query.GetFilter().GetHeaders()
	if i := indexOf(a.GetTopic(), headers); i >= 0 {
		return &jobpb.JobMark{Header: headers[i].Name, Seq: j.Seq}, nil
	}
	return nil, job.NotApplied("the headers that topic %.40q indexes have just changed; begin the search again", j.Topic)
}

// schedules is topics for schedules, of which a page may be short because they are large.
func (q *Queue) schedules(ctx context.Context, p *jobpb.Page, stale bool, readable func(topic string) bool) (*jobpb.ReadResult, error) {
	shown, after, size := &jobpb.ReadResult{}, p.GetAfter(), 0
	for {
		a, err := q.queue.Read(ctx, &jobpb.Read{What: &jobpb.Read_Schedules{Schedules: &jobpb.Page{After: after, Max: p.GetMax()}}}, stale)
		if err != nil {
			return nil, err
		}
		for _, info := range a.Schedules {
			after = info.Name
			if !readable(info.Schedule.GetJob().GetTopic()) {
				continue
			}
			shown.Schedules = append(shown.Schedules, info)
			size += info.Schedule.SizeVT() + info.State.SizeVT()
			if len(shown.Schedules) == int(p.GetMax()) || size > job.MaxScheduleListBytes {
				return shown, nil
			}
		}
		if len(a.Schedules) == 0 {
			return shown, nil
		}
	}
}

// countedTopics is how many topics a sum reads at a time.
const countedTopics = 1000

// totals sums the topics that may be read.
func (q *Queue) totals(ctx context.Context, stale bool, readable func(topic string) bool) (*jobpb.ReadResult, error) {
	sum, after := &jobpb.Totals{}, ""
	for {
		a, err := q.queue.Read(ctx, &jobpb.Read{What: &jobpb.Read_Topics{Topics: &jobpb.Page{After: after, Max: countedTopics}}}, stale)
		if err != nil {
			return nil, err
		}
		for _, t := range a.Topics {
			if after = t.Name; !readable(t.Name) {
				continue
			}
			sum.Topics++
			sum.Delayed += t.Delayed
			sum.Ready += t.Ready
			sum.Reserved += t.Reserved
			sum.Dead += t.Dead
			sum.Retained += t.Retained
		}
		if len(a.Topics) < countedTopics {
			return &jobpb.ReadResult{Totals: sum}, nil
		}
	}
}

// dueTopics looks for topics that may be read among as many as one read gives.
func (q *Queue) dueTopics(ctx context.Context, d *jobpb.DueTopicsQuery, stale bool, readable func(topic string) bool) (*jobpb.ReadResult, error) {
	wide := &jobpb.DueTopicsQuery{FromMs: d.GetFromMs(), UntilMs: d.GetUntilMs(), Max: job.MaxDueTopics}
	a, err := q.queue.Read(ctx, &jobpb.Read{What: &jobpb.Read_DueTopics{DueTopics: wide}}, stale)
	if err != nil {
		return nil, err
	}
	shown := &jobpb.DueTopics{}
	for _, t := range a.GetDueTopics().GetTopics() {
		if !readable(t.Topic) {
			continue
		}
		shown.Jobs += t.Jobs
		if len(shown.Topics) < int(d.GetMax()) {
			shown.Topics = append(shown.Topics, t)
		}
	}
	return &jobpb.ReadResult{DueTopics: shown}, nil
}

// deadTopics is dueTopics for topics with dead jobs. It says when there may be more.
func (q *Queue) deadTopics(ctx context.Context, d *jobpb.DeadTopicsQuery, stale bool, readable func(topic string) bool) (*jobpb.ReadResult, error) {
	wide := &jobpb.DeadTopicsQuery{Reason: d.GetReason(), Max: job.MaxDeadGroups}
	a, err := q.queue.Read(ctx, &jobpb.Read{What: &jobpb.Read_DeadTopics{DeadTopics: wide}}, stale)
	if err != nil {
		return nil, err
	}
	all := a.GetDeadTopics()
	shown := &jobpb.DeadTopics{Incomplete: all.GetIncomplete() || all.GetTopics() > uint64(len(all.GetGroups()))}
	for _, g := range all.GetGroups() {
		if !readable(g.Topic) {
			continue
		}
		shown.Topics++
		shown.Jobs += g.Jobs
		if len(shown.Groups) < int(d.GetMax()) {
			shown.Groups = append(shown.Groups, g)
		}
	}
	return &jobpb.ReadResult{DeadTopics: shown}, nil
}
