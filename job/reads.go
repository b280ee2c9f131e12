package job

import (
	"context"

	"tarry/job/jobpb"
)

// A Reader reads the state. A read is linearizable unless stale is set; then it reads the
// node's own state, which may be behind. Every error is, or wraps, an *Error. What does not
// exist is absent from the result.
type Reader interface {
	Read(ctx context.Context, r *jobpb.Read, stale bool) (*jobpb.ReadResult, error)
}

// Reads are the reads of a Reader, each with its own arguments and result.
type Reads struct{ Reader }

// Job returns a job by id; not_found if there is none.
func (q Reads) Job(ctx context.Context, id string, stale bool) (*jobpb.Job, error) {
	a, err := q.Read(ctx, &jobpb.Read{What: &jobpb.Read_Job{Job: id}}, stale)
	if err == nil && a.GetJob() == nil {
		err = NoSuchJob(id)
	}
	return a.GetJob(), err
}

// NoSuchJob returns the error of a read of a job that does not exist.
func NoSuchJob(id string) error {
	return Errorf(CodeNotFound, "job %.40q does not exist; it may have been finished or deleted: topics with the setting retain keep such jobs", id)
}

// JobsByID returns the jobs with the first of the ids, in their order, with bodies if asked
// to. One without a seq stands for an id that no job has. They are of one state. There are
// fewer than ids, but at least one, when they exceed MaxListBytes.
func (q Reads) JobsByID(ctx context.Context, ids []string, body, stale bool) ([]*jobpb.Job, error) {
	query := &jobpb.JobsByID{Ids: ids, Body: body}
	if err := CheckJobsByID(query); err != nil {
		return nil, err
	}
	a, err := q.Read(ctx, &jobpb.Read{What: &jobpb.Read_JobsById{JobsById: query}}, stale)
	return a.GetById(), err
}

// CheckJobsByID checks how many jobs are asked for.
func CheckJobsByID(q *jobpb.JobsByID) error {
	if n := len(q.GetIds()); n == 0 || n > MaxBatch {
		return Invalid("ids", "has %d items; it takes 1 to %d", n, MaxBatch)
	}
	return nil
}

// JobBySeq returns a job by its seq; not_found if there is none.
func (q Reads) JobBySeq(ctx context.Context, seq uint64, stale bool) (*jobpb.Job, error) {
	a, err := q.Read(ctx, &jobpb.Read{What: &jobpb.Read_JobSeq{JobSeq: seq}}, stale)
	if err == nil && a.GetJob() == nil {
		err = Errorf(CodeNotFound, "there is no job with the number %d", seq)
	}
	return a.GetJob(), err
}

// Peek returns the head of one of a topic's lists: the ready job that is reserved next, even
// if the topic is paused; the delayed job that is due first; the job that has been dead for
// longest. not_found if there is none; invalid for any other state.
func (q Reads) Peek(ctx context.Context, topic string, state jobpb.State, stale bool) (*jobpb.Job, error) {
	switch state {
	case jobpb.State_STATE_READY, jobpb.State_STATE_DELAYED, jobpb.State_STATE_DEAD:
	default:
		return nil, Errorf(CodeInvalid, "state is %s; it must be ready, delayed or dead", StateName(state))
	}
	peek := &jobpb.Peek{Topic: topic, State: state}
	a, err := q.Read(ctx, &jobpb.Read{What: &jobpb.Read_Peek{Peek: peek}}, stale)
	if err == nil && a.GetJob() == nil {
		err = Errorf(CodeNotFound, "topic %.40q has no %s job", topic, StateName(state))
	}
	return a.GetJob(), err
}

// Jobs returns one page of jobs; see CheckJobQuery. A page may be short or empty and still
// have a next one.
func (q Reads) Jobs(ctx context.Context, query *jobpb.JobQuery, stale bool) (*jobpb.JobPage, error) {
	if err := CheckJobQuery(query); err != nil {
		return nil, err
	}
	a, err := q.Read(ctx, &jobpb.Read{What: &jobpb.Read_Jobs{Jobs: query}}, stale)
	return a.GetJobs(), err
}

// Topic returns the counts and settings of one topic; the counts are zero if it has no jobs.
func (q Reads) Topic(ctx context.Context, name string, stale bool) (*jobpb.Topic, error) {
	a, err := q.Read(ctx, &jobpb.Read{What: &jobpb.Read_Topic{Topic: name}}, stale)
	if err == nil && a.GetTopic() == nil {
		return &jobpb.Topic{Name: name}, nil
	}
	return a.GetTopic(), err
}

// Topics returns up to max topics by name, starting after the name given.
func (q Reads) Topics(ctx context.Context, after string, max int, stale bool) ([]*jobpb.Topic, error) {
	page := &jobpb.Page{After: after, Max: uint32(max)}
	a, err := q.Read(ctx, &jobpb.Read{What: &jobpb.Read_Topics{Topics: page}}, stale)
	return a.GetTopics(), err
}

// ConfiguredTopics is Topics for those that have settings, with or without jobs.
func (q Reads) ConfiguredTopics(ctx context.Context, after string, max int, stale bool) ([]*jobpb.Topic, error) {
	page := &jobpb.Page{After: after, Max: uint32(max)}
	a, err := q.Read(ctx, &jobpb.Read{What: &jobpb.Read_ConfiguredTopics{ConfiguredTopics: page}}, stale)
	return a.GetTopics(), err
}

// Totals returns the number of topics, and of all their jobs by state. Its cost does not
// depend on these numbers.
func (q Reads) Totals(ctx context.Context, stale bool) (*jobpb.Totals, error) {
	a, err := q.Read(ctx, &jobpb.Read{What: &jobpb.Read_Totals{Totals: &jobpb.Empty{}}}, stale)
	return a.GetTotals(), err
}

// Schedule returns a schedule by its name; not_found if there is none.
func (q Reads) Schedule(ctx context.Context, name string, stale bool) (*jobpb.ScheduleInfo, error) {
	a, err := q.Read(ctx, &jobpb.Read{What: &jobpb.Read_Schedule{Schedule: name}}, stale)
	if err == nil && a.GetSchedule() == nil {
		err = Errorf(CodeNotFound, "there is no schedule with the name %.40q", name)
	}
	return a.GetSchedule(), err
}

// Schedules returns up to max schedules by name, starting after the name given; fewer if
// they have more than MaxScheduleListBytes together.
func (q Reads) Schedules(ctx context.Context, after string, max int, stale bool) ([]*jobpb.ScheduleInfo, error) {
	page := &jobpb.Page{After: after, Max: uint32(max)}
	a, err := q.Read(ctx, &jobpb.Read{What: &jobpb.Read_Schedules{Schedules: page}}, stale)
	return a.GetSchedules(), err
}

// Forecast returns how many delayed jobs of a topic, or of all, are due in each of some steps
// of time; see CheckForecast. Its cost depends on the steps, not on the number of jobs.
func (q Reads) Forecast(ctx context.Context, query *jobpb.ForecastQuery, stale bool) (*jobpb.Forecast, error) {
	if err := CheckForecast(query); err != nil {
		return nil, err
	}
	a, err := q.Read(ctx, &jobpb.Read{What: &jobpb.Read_Forecast{Forecast: query}}, stale)
	return a.GetForecast(), err
}

// DueTopics returns the topics of which most jobs are due within a time; see CheckDueTopics.
func (q Reads) DueTopics(ctx context.Context, query *jobpb.DueTopicsQuery, stale bool) (*jobpb.DueTopics, error) {
	if err := CheckDueTopics(query); err != nil {
		return nil, err
	}
	a, err := q.Read(ctx, &jobpb.Read{What: &jobpb.Read_DueTopics{DueTopics: query}}, stale)
	return a.GetDueTopics(), err
}

// DeadReasons returns the reasons that most dead jobs of a topic, or of all, have; see
// CheckDeadReasons. Its cost is bounded by MaxDeadScan, not by the number of jobs.
func (q Reads) DeadReasons(ctx context.Context, query *jobpb.DeadReasonsQuery, stale bool) (*jobpb.DeadReasons, error) {
	if err := CheckDeadReasons(query); err != nil {
		return nil, err
	}
	a, err := q.Read(ctx, &jobpb.Read{What: &jobpb.Read_DeadReasons{DeadReasons: query}}, stale)
	return a.GetDeadReasons(), err
}

// DeadTopics returns the topics that most dead jobs with a reason are in; see
// CheckDeadTopics. Its cost is bounded as that of DeadReasons.
func (q Reads) DeadTopics(ctx context.Context, query *jobpb.DeadTopicsQuery, stale bool) (*jobpb.DeadTopics, error) {
	if err := CheckDeadTopics(query); err != nil {
		return nil, err
	}
	a, err := q.Read(ctx, &jobpb.Read{What: &jobpb.Read_DeadTopics{DeadTopics: query}}, stale)
	return a.GetDeadTopics(), err
}

// Token returns a token of a client by its id; not_found if there is none. It has the hash,
// which no client may see. The info is never nil without an error, and does not count tokens.
func (q Reads) Token(ctx context.Context, id string, stale bool) (*jobpb.Token, *jobpb.AuthInfo, error) {
	a, err := q.Read(ctx, &jobpb.Read{What: &jobpb.Read_Token{Token: id}}, stale)
	if err != nil {
		return nil, nil, err
	}
	if len(a.GetTokens()) == 0 {
		return nil, a.GetAuth(), Errorf(CodeNotFound, "there is no token with the id %.40q", id)
	}
	return a.Tokens[0], a.GetAuth(), nil
}

// Tokens returns up to max tokens of clients by id, starting after the id given; fewer if
// they have more than MaxTokenListBytes together.
func (q Reads) Tokens(ctx context.Context, after string, max int, stale bool) ([]*jobpb.Token, *jobpb.AuthInfo, error) {
	page := &jobpb.Page{After: after, Max: uint32(max)}
	a, err := q.Read(ctx, &jobpb.Read{What: &jobpb.Read_Tokens{Tokens: page}}, stale)
	return a.GetTokens(), a.GetAuth(), err
}

// Auth returns the settings for all tokens, and how many there are.
func (q Reads) Auth(ctx context.Context, stale bool) (*jobpb.AuthInfo, error) {
	a, err := q.Read(ctx, &jobpb.Read{What: &jobpb.Read_Auth{Auth: &jobpb.Empty{}}}, stale)
	return a.GetAuth(), err
}
