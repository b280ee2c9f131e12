package fsm

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
	default:
		err = job.Errorf(job.CodeInvalid, "this release does not know the read %T", r.What)
	}
	return a, err
}
