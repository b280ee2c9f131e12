package record

import (
	"strings"

	"tarry/job"
	"tarry/job/jobpb"
)

// HasDeadline reports whether a job of the list is in ListDeadline too.
func (rec *Job) HasDeadline(list List) bool {
	return rec.Status.ExpiresMS != 0 && list.Waits()
}

// ExpiresAt returns when a waiting job of a topic with the settings expires; 0: never.
func (rec *Job) ExpiresAt(s *jobpb.TopicSettings) int64 {
	own, after := rec.Status.ExpiresMS, s.GetExpireMs()
	switch {
	case after == 0:
		return own
	case own == 0:
		return rec.Status.DueMS + after
	}
	return min(own, rec.Status.DueMS+after)
}

// IsHeldBy reports whether the job is reserved, by that generation.
func (rec *Job) IsHeldBy(generation uint32) bool {
	return rec.Status.Phase == PhaseReserved && rec.Status.Generation == generation
}

// EndedWords describes how and when a job ended.
func (rec *Job) EndedWords() string {
	word := "finished"
	if rec.Status.Phase == PhaseDeleted {
		word = "deleted"
	}
	return word + " at " + job.Instant(rec.Status.EndedMS())
}

// EndedNote returns what to add to the refusal of an add whose id a retained job has.
func (rec *Job) EndedNote() string {
	if !rec.Status.Phase.Ended() {
		return ""
	}
	return ", which was " + rec.EndedWords() + " and is retained"
}

// Exhausted reports whether the job has no attempt left.
func (rec *Job) Exhausted() bool {
	return rec.Status.MaxAttempts != 0 && rec.Status.Attempts >= rec.Status.MaxAttempts
}

// IsPast reports whether a reservation of the job has ended. Generations may wrap. One that
// is ahead of the state has not ended.
func (rec *Job) IsPast(generation uint32) bool {
	ahead := int32(rec.Status.Generation - generation)
	return ahead > 0 || ahead == 0 && rec.Status.Phase != PhaseReserved
}

// Job is a job in memory. In the store it is two records (job_codec.go): the
// spec with the body, written by the add, and the status, written by each later change.
// Without a status record a job has the status that NewStatus returns.
type Job struct {
	Seq     uint64
	Spec    Spec
	Status  Status
	Body    []byte // nil if it was not read
	BodyLen int
	// OwnBody reports whether a result may have the body. One that aliases the entry being
	// applied must be copied.
	OwnBody bool
	Gone    bool // deleted in the running transaction
}

// Topic returns the number of the topic that the job is in.
func (rec *Job) Topic() uint32 {
	if rec.Status.MovedTo != 0 {
		return rec.Status.MovedTo
	}
	return rec.Spec.Topic
}

// Name returns the id by which clients know the job.
func (rec *Job) Name(shard uint32) string {
	if rec.Spec.ID != "" {
		return rec.Spec.ID
	}
	return job.ServerID(shard, rec.Seq)
}

// State returns the state of a job of the list.
func (rec *Job) State(list List) jobpb.State { return list.State(rec.Status.Phase) }

// Place returns the place that the job has in a list.
func (rec *Job) Place(list List) Place {
	s := &rec.Status
	switch list {
	case ListDelayed:
		return Place{Instant: s.DueMS, Seq: rec.Seq, Carried: s.Priority}
	case ListReady:
		return Place{Priority: s.Priority, Instant: s.DueMS, Seq: rec.Seq}
	case ListReserved:
		return Place{Instant: s.ReservedUntilMS(), Seq: rec.Seq}
	case ListEnded:
		return Place{Instant: s.RetainedUntilMS(), Seq: rec.Seq}
	case ListExpiring:
		return Place{Instant: s.DueMS, Seq: rec.Seq}
	case ListDeadline:
		return Place{Instant: s.ExpiresMS, Seq: rec.Seq}
	default:
		return Place{Instant: int64(s.Rank), Seq: rec.Seq}
	}
}

// Spec is a job as it was added. Only an update of the body, the backoff or the
// headers writes it again.
type Spec struct {
	ID          string // the producer's; empty: the server names the job after its seq
	Topic       uint32 // as of its last write; record.topic is the present one
	Priority    uint32
	CreatedMS   int64
	DelayMS     int64 // as requested; 0 when DueRequest is set
	DueRequest  int64 // as requested; 0: none
	DueMS       int64 // the due instant that results
	TtrMS       int64
	MaxAttempts uint32
	BodyKind    jobpb.BodyKind
	Options     string // a jobpb.JobOptions; mostly empty
}

// Status is the part of a job that changes.
//
// Four of its fields are also in Spec: priority, DueMS, TtrMS and MaxAttempts. Those of
// the status are in force; an add with the same id is compared with those of the spec.
type Status struct {
	nextStatus
	// Small fields are together, to keep the struct small.
	Phase phase
	// Rewritten: the spec was written more than once, so SingleDelete must not delete it.
	Rewritten bool
	// TimedOut: the last reservation expired, and the job was not reserved, updated or
	// postponed since. Its token may still finish the job.
	TimedOut    bool
	Priority    uint32
	Attempts    uint32
	Generation  uint32
	Reserves    uint32
	Timeouts    uint32
	Releases    uint32
	Buries      uint32
	Kicks       uint32
	MaxAttempts uint32
	// Revision counts the times that the status was written, from 1 on.
	Revision uint32
	// MovedTo is the topic that the job was moved to; 0: the spec's. So a move need not
	// write the spec, which has the body.
	MovedTo     uint32
	DueMS       int64
	LastDelayMS int64
	TtrMS       int64
	ExpiresMS   int64 // when it expires if it waits then; 0: as its topic says
	ModifiedMS  int64 // when the status was last written; at first when the job was added
	// The meaning of untilMS and sinceMS depends on the phase: use ReservedUntilMS,
	// RetainedUntilMS, DiedMS and EndedMS.
	untilMS int64
	sinceMS int64
	Rank    uint64 // place among the dead
	Reason  string
	// LastError is the last reason that a consumer gave; reason may be a newer one of the
	// server.
	LastError string
	// ReservedBy is the consumer that the reserve of a reserved job named.
	ReservedBy string
	// History is set in topics with a retention; see history.go.
	History string
}

// NewStatus returns the status of a job that was just added.
func NewStatus(spec *Spec) Status {
	return Status{
		Priority: spec.Priority, DueMS: spec.DueMS, LastDelayMS: spec.DueMS - spec.CreatedMS,
		TtrMS: spec.TtrMS, MaxAttempts: spec.MaxAttempts, Revision: 1, ModifiedMS: spec.CreatedMS,
		ExpiresMS: spec.expiresMS(),
	}
}

// phase is the part of a job's state that its status has (ListByPhase). Delayed and ready
// jobs have the same phase and differ only by list: so a job falls due without a write of
// its records. The numbers are on disk.
type phase byte

const (
	PhaseWaiting  phase = 0
	PhaseReserved phase = 1
	PhaseDead     phase = 2
	PhaseFinished phase = 3 // and retained
	PhaseDeleted  phase = 4 // and retained
)

// Ended reports whether the job is finished or deleted, and only retained.
func (p phase) Ended() bool { return p == PhaseFinished || p == PhaseDeleted }

// The two instants of a status, by phase:
//
//	phase              untilMS                  sinceMS
//	waiting            0                        not used
//	reserved           end of the reservation   not used
//	dead               0                        when it died
//	finished, deleted  end of the retention     when it ended
//
// Where it is not used, sinceMS keeps the value of the last death.

// ReservedUntilMS is the end of a reserved job's reservation.
func (s *Status) ReservedUntilMS() int64 { return s.untilMS }

// RetainedUntilMS is the end of an ended job's retention.
func (s *Status) RetainedUntilMS() int64 { return s.untilMS }

// DiedMS is when a dead job died.
func (s *Status) DiedMS() int64 { return s.sinceMS }

// EndedMS is when an ended job was finished or deleted.
func (s *Status) EndedMS() int64 { return s.sinceMS }

// SetWaiting makes a reserved or dead job wait to be reserved.
func (s *Status) SetWaiting() {
	s.Phase, s.untilMS, s.Rank, s.ReservedBy = PhaseWaiting, 0, 0, ""
}

// SetReserved begins a reservation, or changes its end.
func (s *Status) SetReserved(untilMS int64) { s.Phase, s.untilMS = PhaseReserved, untilMS }

// SetDead makes the job dead. rank orders the dead jobs of a topic.
func (s *Status) SetDead(rank uint64, atMS int64) {
	s.Phase, s.untilMS, s.Rank, s.sinceMS, s.ReservedBy = PhaseDead, 0, rank, atMS, ""
}

// SetEnded begins the retention of a job; how is PhaseFinished or PhaseDeleted.
func (s *Status) SetEnded(how phase, atMS, retainedUntilMS int64) {
	s.Phase, s.untilMS, s.Rank, s.sinceMS, s.ReservedBy = how, retainedUntilMS, 0, atMS, ""
}

func (s *Status) SetPriority(set bool, priority uint32) {
	if set {
		s.Priority = priority
	}
}

// SetReason sets the reason that a consumer gave, if any.
func (s *Status) SetReason(reason string) {
	if reason != "" {
		s.Reason = strings.Clone(reason) // it outlives the entry
		s.LastError = s.Reason
	}
}
