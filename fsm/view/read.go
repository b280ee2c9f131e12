package view

import (
	"tarry/job"
	"tarry/job/jobpb"
)

// Read answers a read, of which what has a case here.
func (v *View) Read(r *jobpb.Read) (*jobpb.ReadResult, error) {
	a, err := new(jobpb.ReadResult), error(nil)
	switch what := r.What.(type) {
	case *jobpb.Read_Job:
		a.Job, _, err = v.Job(what.Job)
	case *jobpb.Read_JobSeq:
		a.Job, _, err = v.JobBySeq(what.JobSeq)
	case *jobpb.Read_Peek:
		a.Job, _, err = v.Peek(what.Peek.GetTopic(), what.Peek.GetState())
	case *jobpb.Read_Jobs:
		a.Jobs, err = v.Jobs(what.Jobs)
	case *jobpb.Read_Topic:
		a.Topic, err = v.Topic(what.Topic)
	case *jobpb.Read_Topics:
		a.Topics, err = v.Topics(what.Topics.GetAfter(), int(what.Topics.GetMax()))
	case *jobpb.Read_ConfiguredTopics:
		a.Topics, err = v.ConfiguredTopics(what.ConfiguredTopics.GetAfter(), int(what.ConfiguredTopics.GetMax()))
	case *jobpb.Read_Totals:
		a.Totals, err = v.Totals()
	case *jobpb.Read_Schedule:
		a.Schedule, _, err = v.Schedule(what.Schedule)
	case *jobpb.Read_Schedules:
		a.Schedules, err = v.Schedules(what.Schedules.GetAfter(), int(what.Schedules.GetMax()))
	case *jobpb.Read_Explain:
		a.Explanation, err = v.Explain(what.Explain.GetId(), what.Explain.GetNowMs())
	case *jobpb.Read_JobsById:
		a.ById, err = v.JobsByID(what.JobsById)
	case *jobpb.Read_Forecast:
		a.Forecast, err = v.Forecast(what.Forecast)
	case *jobpb.Read_DueTopics:
		a.DueTopics, err = v.DueTopics(what.DueTopics)
	case *jobpb.Read_DeadReasons:
		a.DeadReasons, err = v.DeadReasons(what.DeadReasons)
	case *jobpb.Read_DeadTopics:
		a.DeadTopics, err = v.DeadTopics(what.DeadTopics)
	case *jobpb.Read_Token:
		var t *jobpb.Token
		if t, a.Auth, err = v.Token(what.Token); t != nil {
			a.Tokens = []*jobpb.Token{t}
		}
	case *jobpb.Read_Tokens:
		a.Tokens, a.Auth, err = v.Tokens(what.Tokens.GetAfter(), int(what.Tokens.GetMax()))
	case *jobpb.Read_Namespace:
		var n *jobpb.NamespaceUse
		if n, err = v.Namespace(what.Namespace); n != nil {
			a.Namespaces = []*jobpb.NamespaceUse{n}
		}
	case *jobpb.Read_Namespaces:
		a.Namespaces, err = v.Namespaces()
	case *jobpb.Read_Config:
		a.Config, err = v.Config()
	case *jobpb.Read_Auth:
		a.Auth, err = v.Auth()
	case *jobpb.Read_Admission:
		a.Admission, err = v.Admission()
	default:
		err = job.Errorf(job.CodeInvalid, "this release does not know the read %T", r.What)
	}
	return a, err
}
