package api

import (
	"math/rand/v2"
	"slices"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

// verb is one kind of change.
type verb struct {
	name  string
	takes []string // the fields that the verb takes, besides id
	op    func(*wire.ChangeItem, *jobpb.Ref) (*jobpb.Op, error)
}

var (
	verbFinish  = verbOf("finish", wire.FinishItem{}, finishOp)
	verbRelease = verbOf("release", wire.ReleaseRequest{}, releaseOp)
	verbTouch   = verbOf("touch", wire.TouchRequest{}, touchOp)
	verbBury    = verbOf("bury", wire.BuryRequest{}, buryOp)
	verbKick    = verbOf("kick", wire.KickRequest{}, kickOp)
	verbDelete  = verbOf("delete", wire.FinishItem{}, deleteOp) // of lists; one job has a DELETE of its own
	verbMove    = verbOf("move", wire.MoveRequest{}, moveOp)
)

func verbOf(name string, request any, op func(*wire.ChangeItem, *jobpb.Ref) (*jobpb.Op, error)) verb {
	takes := slices.DeleteFunc(wire.Names(request), func(name string) bool { return name == "id" })
	return verb{name, takes, op}
}

// make returns the operation.
func (v verb) make(q *wire.ChangeItem) (*jobpb.Op, error) {
	for _, name := range q.Given() {
		if !slices.Contains(v.takes, name) {
			return nil, job.Invalid(name, "is not a field of %s; it takes: %s", v.name, wire.OrNone(v.takes))
		}
	}
	ref := &jobpb.Ref{Id: q.ID.V}
	if q.ID.Set {
		if err := job.CheckRefID("id", q.ID.V); err != nil {
			return nil, err
		}
	}
	if q.Token.Set {
		if err := fence(ref, q.Token.V); err != nil {
			return nil, err
		}
	}
	return v.op(q, ref)
}

// inPath is make for a job whose id is in the path.
func (v verb) inPath(q *wire.ChangeItem, id string) (*jobpb.Op, error) {
	if q.ID.Set && q.ID.V != id {
		return nil, job.Invalid("id", "%.40q in the request differs from %.40q in the path", q.ID.V, id)
	}
	q.ID = wire.Opt[string]{Set: true, V: id}
	return v.make(q)
}

// fence restricts ref to the reservation that the token names.
func fence(ref *jobpb.Ref, token string) error {
	t, err := job.ParseToken(token)
	if err != nil {
		return job.Errorf(job.CodeInvalid, "%w", err).In("token")
	}
	if t.Shard != 0 {
		return job.Errorf(job.CodeStaleToken, "token names shard %d, which this cluster does not have", t.Shard)
	}
	ref.Seq, ref.Generation = t.Seq, t.Generation
	return nil
}

func finishOp(_ *wire.ChangeItem, ref *jobpb.Ref) (*jobpb.Op, error) {
	return &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: ref}}}, nil
}

func releaseOp(q *wire.ChangeItem, ref *jobpb.Ref) (*jobpb.Op, error) {
	priority, err := wire.Uint32Of("priority", q.Priority.V)
	return &jobpb.Op{Kind: &jobpb.Op_Release{Release: &jobpb.Release{
		Ref: ref, DelayMs: job.MillisOf(q.Delay.V), SetPriority: q.Priority.Set, Priority: priority, Reason: q.Reason.V,
		Backoff: !q.Delay.Set, Entropy: rand.Uint64(),
	}}}, err
}

func touchOp(q *wire.ChangeItem, ref *jobpb.Ref) (*jobpb.Op, error) {
	touch := &jobpb.Touch{Ref: ref}
	if q.TTR.Set {
		var err error
		if touch.TtrMs, err = job.TTRMillis("ttr", q.TTR.V); err != nil {
			return nil, err
		}
	}
	return &jobpb.Op{Kind: &jobpb.Op_Touch{Touch: touch}}, nil
}

func buryOp(q *wire.ChangeItem, ref *jobpb.Ref) (*jobpb.Op, error) {
	priority, err := wire.Uint32Of("priority", q.Priority.V)
	return &jobpb.Op{Kind: &jobpb.Op_Bury{Bury: &jobpb.Bury{
		Ref: ref, SetPriority: q.Priority.Set, Priority: priority, Reason: q.Reason.V,
	}}}, err
}

func kickOp(q *wire.ChangeItem, ref *jobpb.Ref) (*jobpb.Op, error) {
	if q.ToTopic.Set { // an empty one would be the job's own
		if err := job.CheckTopic("to_topic", q.ToTopic.V); err != nil {
			return nil, err
		}
	}
	return &jobpb.Op{Kind: &jobpb.Op_Kick{Kick: &jobpb.Kick{Ref: ref, ToTopic: q.ToTopic.V}}}, nil
}

func deleteOp(_ *wire.ChangeItem, ref *jobpb.Ref) (*jobpb.Op, error) {
	return &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: ref}}}, nil
}

func moveOp(q *wire.ChangeItem, ref *jobpb.Ref) (*jobpb.Op, error) {
	return &jobpb.Op{Kind: &jobpb.Op_MoveJobs{MoveJobs: &jobpb.MoveJobs{Ref: ref, To: q.To.V}}}, nil
}

// changeOne handles POST /v1/jobs/{id}/<verb>.
func changeOne(v verb) func(*server, *call) error {
	return func(s *server, x *call) error {
		id, err := x.pathID()
		if err != nil {
			return err
		}
		var q wire.ChangeItem
		if err := x.decodeOptional(maxSmallRequest, &q); err != nil {
			return err
		}
		op, err := v.inPath(&q, id)
		if err != nil {
			return err
		}
		return s.changed(x, op)
	}
}

// changed applies one operation on a job and responds with the result.
func (s *server) changed(x *call, op *jobpb.Op) error {
	return s.apply(x, op, x.json.changed)
}

// changed adds the fields of a successful change.
func (w *writer) changed(r *jobpb.Result) {
	w.boolean("success", true)
	w.text("id", r.Id)
	w.number("seq", r.Seq)
	w.text("state", stateNames[r.State])
	if r.State == jobpb.State_STATE_NONE {
		return
	}
	w.number("revision", uint64(r.Revision))
	w.timestamp("due_at", r.DueMs)
	w.timestamp("reserved_until", r.ReservedUntilMs)
}
