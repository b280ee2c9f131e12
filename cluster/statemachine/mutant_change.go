//go:build chaos

package statemachine

import (
	"tarry/internal/hook"
	"tarry/job/jobpb"
)

// halvedEvery is how many calls that are done as a whole there are for each that
// is halved.
const halvedEvery = 4

// unfoundEvery is how many jobs there are for each that is not found.
const unfoundEvery = 8

// reword makes an operation ask for less than its sender wants and returns how to
// make its answer look right; nil when it is left alone.
func (m *mutant) reword(now int64, op *jobpb.Op) func(*jobpb.Result) {
	switch m.name {
	case hook.HalfBatch:
		if c := op.GetAtomicAdd(); c != nil && len(c.Adds) > 1 && oneIn(nameOfAdd(c.Adds[0]), halvedEvery) {
			return halve(c)
		}
	case hook.ForgetPostpone:
		if a := op.GetAdd(); a.GetIfExists() == jobpb.IfExists_IF_EXISTS_POSTPONE {
			return stay(now, a)
		}
	case hook.ForgetHeader:
		if a := op.GetAdd(); a != nil && oneIn(nameOfAdd(a), unfoundEvery) {
			return unfindable(a)
		}
	case hook.ForgetAttempts:
		if j := op.GetImportJob(); j.GetAttempts() > 0 {
			j.Attempts = 0
			return func(*jobpb.Result) {}
		}
	case hook.ForgetQuota, hook.HalveQuota:
		if n := op.GetPutNamespace().GetNamespace(); n.GetQuotas() != nil {
			return m.requota(n)
		}
	case hook.IgnoreCondition:
		return unconditional(op)
	}
	return nil
}

// halve drops the second half of what a call adds.
func halve(c *jobpb.AtomicAdd) func(*jobpb.Result) {
	dropped := c.Adds[(len(c.Adds)+1)/2:]
	c.Adds = c.Adds[:len(c.Adds)-len(dropped)]
	return func(r *jobpb.Result) {
		for i, a := range dropped {
			if r.Code == jobpb.Code_OK {
				r.Details.Parts = append(r.Details.Parts, &jobpb.Result{Seq: 1<<40 + uint64(i), Id: a.Id, State: jobpb.State_STATE_READY, Revision: 1})
			}
		}
	}
}

// stay makes an add that postpones a job leave it as it is.
func stay(now int64, a *jobpb.Add) func(*jobpb.Result) {
	a.IfExists = jobpb.IfExists_IF_EXISTS_KEEP
	return func(r *jobpb.Result) {
		if r.Existing {
			r.Postponed, r.DueMs = true, dueOf(now, a)
		}
	}
}

// unfindable empties the headers of a job, so that no search finds it.
func unfindable(a *jobpb.Add) func(*jobpb.Result) {
	if len(a.Options.GetHeaders()) == 0 {
		return nil
	}
	for _, h := range a.Options.Headers {
		h.Value = ""
	}
	return func(*jobpb.Result) {}
}

// requota takes the quotas from a namespace, or half of its room.
func (m *mutant) requota(n *jobpb.Namespace) func(*jobpb.Result) {
	switch jobs := n.Quotas.Jobs; {
	case m.name == hook.ForgetQuota:
		n.Quotas = nil
	case jobs != nil:
		*jobs /= 2
	}
	return func(*jobpb.Result) {}
}

// unconditional takes the condition from an operation.
func unconditional(op *jobpb.Op) func(*jobpb.Result) {
	condition := op.GetUpdate().GetCondition()
	switch k := op.Kind.(type) {
	case *jobpb.Op_Update:
		k.Update.Condition = nil
	case *jobpb.Op_Delete:
		condition, k.Delete.Condition = k.Delete.Condition, nil
	case *jobpb.Op_Add:
		condition, k.Add.Condition = k.Add.Condition, nil
	}
	if condition == nil {
		return nil
	}
	return func(*jobpb.Result) {}
}
