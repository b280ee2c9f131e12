package fsm

import (
	"strings"

	"tarry/job"
	"tarry/job/jobpb"
)

// record is a job in memory. In the store it is two records (record_job_codec.go): spec,
// with the body, which is written when the job is added; and status, which is written
// whenever the job changes. A job without a status record has the status that newStatus
// gives it.
type record struct {
	seq     uint64
	spec    jobSpec
	status  jobStatus
	body    []byte // nil when it was not asked for
	bodyLen int
	// ownBody reports whether body may be handed out. A body that came in with the
	// entry being applied may not.
	ownBody bool
	gone    bool // deleted in the running transaction
}

// topic is the number of the topic that the job is in.
func (rec *record) topic() uint32 {
	if rec.status.movedTo != 0 {
		return rec.status.movedTo
	}
	return rec.spec.topic
}

// name is the id by which clients know the job.
func (rec *record) name(shard uint32) string {
	if rec.spec.id != "" {
		return rec.spec.id
	}
	return job.ServerID(shard, rec.seq)
}

// state is the state that users see of a job that is in the list.
func (rec *record) state(list listKind) jobpb.State { return list.state(rec.status.phase) }

// place is the place of the job in a list.
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
	default:
		return place{instant: int64(s.rank), seq: rec.seq}
	}
}

// jobSpec is a job as it was added. It is written once, however often the job changes;
// only an update of the body, the backoff or the headers writes it again.
type jobSpec struct {
	id          string // the producer's; empty: the server names the job after its seq
	topic       uint32 // when it was written; record.topic is the topic of now
	priority    uint32
	createdMS   int64
	delayMS     int64 // as requested; 0 when dueRequest is set
	dueRequest  int64 // as requested; 0: none
	dueMS       int64 // what came of it
	ttrMS       int64
	maxAttempts uint32
	bodyKind    jobpb.BodyKind
	options     string // a jobpb.JobOptions; mostly none
}

// jobStatus is what has become of a job since it was added.
//
// It has four fields of the names that jobSpec has: priority, dueMS, ttrMS and
// maxAttempts. Those of the status are in force; those of the spec are what an add with
// the same id is compared with.
type jobStatus struct {
	nextStatus
	// Small fields stand together: there is one of these for each job in use.
	phase phase
	// rewritten reports whether the spec was written more than once, so that it
	// cannot be deleted by SingleDelete.
	rewritten bool
	// timedOut reports whether the last reservation expired, and the job was neither
	// handed out, updated nor postponed since: its token may still finish the job.
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
	// movedTo is the topic that the job was moved to; 0: it is where it was added. The
	// spec, which has the body, need not be written again then.
	movedTo     uint32
	dueMS       int64
	lastDelayMS int64
	ttrMS       int64
	modifiedMS  int64 // when the status was last written; at first when the job was added
	// untilMS and sinceMS mean one thing in each phase, and are named by their
	// accessors: reservedUntilMS and retainedUntilMS, diedMS and endedMS.
	untilMS int64
	sinceMS int64
	rank    uint64 // place among the dead
	reason  string
	// lastError is the last reason that a consumer gave; reason may be newer
	// and the server's.
	lastError string
	// reservedBy is the consumer that the reserve of a reserved job named.
	reservedBy string
	// history is what happened to the job, if its topic retains jobs; see
	// record_history.go.
	history string
}

// newStatus is the status of a job to which nothing has happened since it was added.
func newStatus(spec *jobSpec) jobStatus {
	return jobStatus{
		priority: spec.priority, dueMS: spec.dueMS, lastDelayMS: spec.dueMS - spec.createdMS,
		ttrMS: spec.ttrMS, maxAttempts: spec.maxAttempts, revision: 1, modifiedMS: spec.createdMS,
	}
}

// phase is what a status tells of the list that a job is in (listByPhase). It does not
// tell delayed from ready: only the lists do, so that a job falls due without its records
// being written. The numbers are on disk.
type phase byte

const (
	phaseWaiting  phase = 0
	phaseReserved phase = 1
	phaseDead     phase = 2
	phaseFinished phase = 3 // and retained
	phaseDeleted  phase = 4 // and retained
)

// ended reports whether the job is done with and only retained.
func (p phase) ended() bool { return p == phaseFinished || p == phaseDeleted }

// The transitions between the phases, and what is known of a job in one of them. A
// record keeps two instants of its phase, untilMS and sinceMS:
//
//	phase              untilMS                  sinceMS
//	waiting            0                        not used
//	reserved           end of the reservation   not used
//	dead               0                        when it died
//	finished, deleted  end of the retention     when it ended
//
// Where it is not used, sinceMS is what the last death has left.

// reservedUntilMS is the end of a reserved job's reservation.
func (s *jobStatus) reservedUntilMS() int64 { return s.untilMS }

// retainedUntilMS is the end of an ended job's retention.
func (s *jobStatus) retainedUntilMS() int64 { return s.untilMS }

// diedMS is when a dead job died.
func (s *jobStatus) diedMS() int64 { return s.sinceMS }

// endedMS is when an ended job was finished or deleted.
func (s *jobStatus) endedMS() int64 { return s.sinceMS }

// setWaiting ends a reservation or a death: the job waits to be handed out.
func (s *jobStatus) setWaiting() {
	s.phase, s.untilMS, s.rank, s.reservedBy = phaseWaiting, 0, 0, ""
}

// setReserved begins a reservation, or changes its end.
func (s *jobStatus) setReserved(untilMS int64) { s.phase, s.untilMS = phaseReserved, untilMS }

// setDead sets the job aside at a place among the dead.
func (s *jobStatus) setDead(rank uint64, atMS int64) {
	s.phase, s.untilMS, s.rank, s.sinceMS, s.reservedBy = phaseDead, 0, rank, atMS, ""
}

// setEnded begins the retention of a job that was finished or deleted, as how says.
func (s *jobStatus) setEnded(how phase, atMS, retainedUntilMS int64) {
	s.phase, s.untilMS, s.rank, s.sinceMS, s.reservedBy = how, retainedUntilMS, 0, atMS, ""
}

func (s *jobStatus) setPriority(set bool, priority uint32) {
	if set {
		s.priority = priority
	}
}

// setReason keeps the last reason that a consumer gave.
func (s *jobStatus) setReason(reason string) {
	if reason != "" {
		s.reason = strings.Clone(reason) // it outlives the entry
		s.lastError = s.reason
	}
}
