package access

import (
	"context"

	"tarry/auth"
	"tarry/job/jobpb"
)

// checkOp refuses an operation that names a topic on which the caller may not do it. An
// operation on a job names no topic: the state machine knows where the job is.
func (q *Queue) checkOp(ctx context.Context, op *jobpb.Op) error {
	if q.checks.State().Mode() != jobpb.AuthMode_AUTH_ENFORCE {
		return nil // the state machine does it, and reports what it would deny
	}
	var err error
	allow := func(verbs auth.Verbs, topic string) {
		if err == nil {
			err = q.checks.Allow(ctx, verbs, topic)
		}
	}
	add := func(a *jobpb.Add) { allow(auth.Add|pushing(a.GetOptions().GetPushUrl() != ""), a.GetTopic()) }
	addTo := func(topic string) {
		if topic != "" {
			allow(auth.Add, topic)
		}
	}
	switch k := op.Kind.(type) {
	case *jobpb.Op_Add:
		add(k.Add)
	case *jobpb.Op_ImportJob:
		add(k.ImportJob.GetAdd())
		allow(auth.Manage, k.ImportJob.GetAdd().GetTopic())
	case *jobpb.Op_AtomicAdd:
		for _, a := range k.AtomicAdd.GetAdds() {
			add(a)
		}
	case *jobpb.Op_Kick:
		addTo(k.Kick.GetToTopic())
	case *jobpb.Op_KickTopic:
		allow(auth.Manage, k.KickTopic.GetTopic())
		addTo(k.KickTopic.GetToTopic())
	case *jobpb.Op_Purge:
		allow(auth.Manage, k.Purge.GetTopic())
	case *jobpb.Op_ReleaseTopic:
		allow(auth.Manage, k.ReleaseTopic.GetTopic())
	case *jobpb.Op_MoveJobs:
		if k.MoveJobs.GetRef() == nil {
			allow(auth.Manage, k.MoveJobs.GetTopic())
		}
		addTo(k.MoveJobs.GetTo())
	case *jobpb.Op_PauseTopic:
		allow(auth.Manage, k.PauseTopic.GetTopic())
	case *jobpb.Op_SetTopic:
		// Whether the push target changes, which needs another verb, depends on the present one.
		allow(auth.Manage, k.SetTopic.GetTopic())
	case *jobpb.Op_PutInvitation, *jobpb.Op_EndInvitation, *jobpb.Op_SetAdmission:
		allow(auth.Operate, "")
	case *jobpb.Op_PutSchedule:
		if a := k.PutSchedule.GetSchedule().GetJob(); a != nil {
			allow(auth.Manage|auth.Add|pushing(a.GetOptions().GetPushUrl() != ""), a.GetTopic())
		}
	}
	return err
}

func pushing(is bool) auth.Verbs {
	if is {
		return auth.Push
	}
	return 0
}
