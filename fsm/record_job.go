package fsm

import (
	"strings"

	"tarry/job"
	"tarry/job/jobpb"
)

// record is a job in memory. In the store it is two records (record_job_codec.go): the
// spec with the body, written by the add, and the status, written by each later change.
// Without a status record a job has the status that newStatus returns.
type record struct {
	seq     uint64
	spec    jobSpec
	status  jobStatus
	body    []byte // nil if it was not read
	bodyLen int
	// ownBody reports whether a result may have the body. One that aliases the entry being
	// applied must be copied.
	ownBody bool
	gone    bool // deleted in the running transaction
}

// topic returns the number of the topic that the job is in.
func (rec *record) topic() uint32 {
	if rec.status.movedTo != 0 {
		return rec.status.movedTo
	}
	return rec.spec.topic
}

// name returns the id by which clients know the job.
func (rec *record) name(shard uint32) string {
	if rec.spec.id != "" {
		return rec.spec.id
	}
	return job.ServerID(shard, rec.seq)
}

// state returns the state of a job of the list.
func (rec *record) state(list listKind) jobpb.State { return list.state(rec.status.phase) }

// place returns the place that the job has in a list.
func (rec *record) place(list listKind) place {
	s := &rec.status
	switch list {
	case listDelayed:
		return place{instant: s.dueMS, seq: rec.seq, carried: s.priority}
	case listReady:
		return place{priority: s.priority, instant: s.dueMS, seq: rec.seq}
	case listReserved:
		return place{instant: s.reservedUntilMS(), seq: rec.seq}
	case listEnded:
		return place{instant: s.retainedUntilMS(), seq: rec.seq}
	case listExpiring:
		return place{instant: s.dueMS, seq: rec.seq}
	case listDeadline:
		return place{instant: s.expiresMS, seq: rec.seq}
	default:
		return place{instant: int64(s.rank), seq: rec.seq}
	}
}

// jobSpec is a job as it was added. Only an update of the body, the backoff or the
// headers writes it again.
type jobSpec struct {
	id          string // the producer's; empty: the server names the job after its seq
	topic       uint32 // as of its last write; record.topic is the present one
	priority    uint32
	createdMS   int64
	delayMS     int64 // as requested; 0 when dueRequest is set
	dueRequest  int64 // as requested; 0: none
	dueMS       int64 // the due instant that results
	ttrMS       int64
	maxAttempts uint32
	bodyKind    jobpb.BodyKind
	options     string // a jobpb.JobOptions; mostly empty
}

// jobStatus is the part of a job that changes.
//
// Four of its fields are also in jobSpec: priority, dueMS, ttrMS and maxAttempts. Those of
// the status are in force; an add with the same id is compared with those of the spec.
type jobStatus struct {
	nextStatus
	// Small fields are together, to keep the struct small.
	phase phase
	// rewritten: the spec was written more than once, so SingleDelete must not delete it.
	rewritten bool
	// timedOut: the last reservation expired, and the job was not reserved, updated or
	// postponed since. Its token may still finish the job.
	timedOut    bool
	priority    uint32
	attempts    uint32
	generation  uint32
	reserves    uint32
	timeouts    uint32
	releases    uint32
	buries      uint32
	kicks       uint32
	maxAttempts uint32
	// revision counts the times that the status was written, from 1 on.
	revision uint32
	// movedTo is the topic that the job was moved to; 0: the spec's. So a move need not
	// write the spec, which has the body.
	movedTo     uint32
	dueMS       int64
	lastDelayMS int64
	ttrMS       int64
	expiresMS   int64 // when it expires if it waits then; 0: as its topic says
	modifiedMS  int64 // when the status was last written; at first when the job was added
	// The meaning of untilMS and sinceMS depends on the phase: use reservedUntilMS,
	// retainedUntilMS, diedMS and endedMS.
	untilMS int64
	sinceMS int64
	rank    uint64 // place among the dead
	reason  string
	// lastError is the last reason that a consumer gave; reason may be a newer one of the
	// server.
	lastError string
	// reservedBy is the consumer that the reserve of a reserved job named.
	reservedBy string
	// history is set in topics with a retention; see record_history.go.
	history string
}

// newStatus returns the status of a job that was just added.
func newStatus(spec *jobSpec) jobStatus {
	return jobStatus{
		priority: spec.priority, dueMS: spec.dueMS, lastDelayMS: spec.dueMS - spec.createdMS,
		ttrMS: spec.ttrMS, maxAttempts: spec.maxAttempts, revision: 1, modifiedMS: spec.createdMS,
		expiresMS: spec.expiresMS(),
	}
}

// phase is the part of a job's state that its status has (listByPhase). Delayed and ready
// jobs have the same phase and differ only by list: so a job falls due without a write of
// its records. The numbers are on disk.
type phase byte

const (
	phaseWaiting  phase = 0
	phaseReserved phase = 1
	phaseDead     phase = 2
	phaseFinished phase = 3 // and retained
	phaseDeleted  phase = 4 // and retained
)

// ended reports whether the job is finished or deleted, and only retained.
func (p phase) ended() bool { return p == phaseFinished || p == phaseDeleted }

// The two instants of a status, by phase:
//
//	phase              untilMS                  sinceMS
//	waiting            0                        not used
//	reserved           end of the reservation   not used
//	dead               0                        when it died
//	finished, deleted  end of the retention     when it ended
//
// Where it is not used, sinceMS keeps the value of the last death.

// reservedUntilMS is the end of a reserved job's reservation.
func (s *jobStatus) reservedUntilMS() int64 { return s.untilMS }

// retainedUntilMS is the end of an ended job's retention.
func (s *jobStatus) retainedUntilMS() int64 { return s.untilMS }

// diedMS is when a dead job died.
func (s *jobStatus) diedMS() int64 { return s.sinceMS }

// endedMS is when an ended job was finished or deleted.
func (s *jobStatus) endedMS() int64 { return s.sinceMS }

// setWaiting makes a reserved or dead job wait to be reserved.
func (s *jobStatus) setWaiting() {
	s.phase, s.untilMS, s.rank, s.reservedBy = phaseWaiting, 0, 0, ""
}

// setReserved begins a reservation, or changes its end.
func (s *jobStatus) setReserved(untilMS int64) { s.phase, s.untilMS = phaseReserved, untilMS }

// setDead makes the job dead. rank orders the dead jobs of a topic.
func (s *jobStatus) setDead(rank uint64, atMS int64) {
	s.phase, s.untilMS, s.rank, s.sinceMS, s.reservedBy = phaseDead, 0, rank, atMS, ""
}

// setEnded begins the retention of a job; how is phaseFinished or phaseDeleted.
func (s *jobStatus) setEnded(how phase, atMS, retainedUntilMS int64) {
	s.phase, s.untilMS, s.rank, s.sinceMS, s.reservedBy = how, retainedUntilMS, 0, atMS, ""
}

func (s *jobStatus) setPriority(set bool, priority uint32) {
	if set {
		s.priority = priority
	}
}

// setReason sets the reason that a consumer gave, if any.
func (s *jobStatus) setReason(reason string) {
	if reason != "" {
		s.reason = strings.Clone(reason) // it outlives the entry
		s.lastError = s.reason
	}
}
