package oplog

import (
	"slices"

	"tarry/job"
	"tarry/job/jobpb"
)

func checkPutToken(l *job.Limits, op *jobpb.PutToken) error {
	if err := l.CheckToken(op.Token); err != nil {
		return err
	}
	if err := job.WithinSeconds("overlap", op.OverlapMs, 0, l.MaxTokenOverlap); err != nil {
		return err
	}
	grants := func(r *jobpb.Rule) bool { return slices.Contains(r.Verbs, jobpb.Verb_VERB_ADMIN) }
	switch {
	case op.Bootstrap && len(op.Token.Hash) == 0:
		return job.Invalid("hash", "is missing in the first token")
	case op.Bootstrap && !slices.ContainsFunc(op.Token.Rules, grants):
		return job.Invalid("rules", "of the first token must have the verb admin: it makes the others")
	}
	return nil
}

// checkPeerOp checks the principal of an operation that a peer sends.
func checkPeerOp(op *jobpb.Op) error {
	if op.Principal == job.SystemPrincipal && endsReservation(op) {
		return nil
	}
	return job.CheckPeerPrincipal(op.Principal)
}

// endsReservation reports whether op ends a reservation whose token it has. A node does such
// ones by itself: it gives back what no consumer received, and writes the outcomes of posts,
// also when it leads no more.
func endsReservation(op *jobpb.Op) bool {
	switch k := op.Kind.(type) {
	case *jobpb.Op_Finish:
		return k.Finish.GetRef().GetGeneration() != 0
	case *jobpb.Op_Release:
		return k.Release.GetRef().GetGeneration() != 0
	}
	return false
}
