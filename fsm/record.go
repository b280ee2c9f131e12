package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"tarry/job"
	"tarry/job/jobpb"
)

// Versions of the records on disk, each the record's first byte. One with several
// formats is written as the cluster version says (migrate.go).
const (
	originVersion = 3
	fateVersion   = 3
	topicVersion  = 2
)

// errShort is returned when a record ends before its last field.
var errShort = errors.New("record is too short")

// origin is a job as it was added. It is written once, however often the job
// changes state; only an update of the body writes it again.
type origin struct {
	id          string // the producer's; empty: the server names the job after its seq
	topic       uint32
	priority    uint32
	createdMS   int64
	delayMS     int64 // as requested; 0 when dueRequest is set
	dueRequest  int64 // as requested; 0: none
	dueMS       int64 // what came of it
	ttrMS       int64
	maxAttempts uint32
	bodyKind    jobpb.BodyKind
	extras      string // a jobpb.Extras; mostly none
	bodyLen     int    // not on disk: what is left of the record
}

const originFixed = 1 + 1 + 4 + 4 + 5*8 + 4 + 1

// append encodes o and body.
func (o *origin) append(b, body []byte) []byte {
	b = append(b, originVersion, byte(o.bodyKind))
	b = binary.BigEndian.AppendUint32(b, o.topic)
	b = binary.BigEndian.AppendUint32(b, o.priority)
	for _, v := range [...]int64{o.createdMS, o.delayMS, o.dueRequest, o.dueMS, o.ttrMS} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	b = binary.BigEndian.AppendUint32(b, o.maxAttempts)
	b = append(b, byte(len(o.id)))
	b = append(b, o.id...)
	b = binary.AppendUvarint(b, uint64(len(o.extras)))
	b = append(b, o.extras...)
	return append(b, body...)
}

// decodeOrigin reads a record; the body it returns aliases b.
func decodeOrigin(b []byte) (o origin, body []byte, err error) {
	if err := checkVersion("job record", b, originVersion); err != nil {
		return origin{}, nil, err
	}
	if len(b) < originFixed {
		return origin{}, nil, fmt.Errorf("job record of %d bytes: %w", len(b), errShort)
	}
	o.bodyKind = jobpb.BodyKind(b[1])
	o.topic = binary.BigEndian.Uint32(b[2:])
	o.priority = binary.BigEndian.Uint32(b[6:])
	for i, p := range [...]*int64{&o.createdMS, &o.delayMS, &o.dueRequest, &o.dueMS, &o.ttrMS} {
		*p = int64(binary.BigEndian.Uint64(b[10+8*i:]))
	}
	o.maxAttempts = binary.BigEndian.Uint32(b[50:])
	idLen := int(b[54])
	rest := b[originFixed:]
	if len(rest) < idLen {
		return origin{}, nil, fmt.Errorf("job record's id: %w", errShort)
	}
	o.id = string(rest[:idLen])
	rest = rest[idLen:]
	extrasLen, n := binary.Uvarint(rest)
	switch {
	case n <= 0 || extrasLen > uint64(len(rest)-n):
		return origin{}, nil, fmt.Errorf("job record's extras: %w", errShort)
	case n > 1 && rest[n-1] == 0:
		return origin{}, nil, errors.New("job record's extras: their length is longer than it was written")
	}
	if rest = rest[n:]; extrasLen > 0 {
		o.extras = string(rest[:extrasLen])
	}
	body = rest[extrasLen:]
	o.bodyLen = len(body)
	return o, body, nil
}

// name is the id by which clients know the job.
func (o *origin) name(shard uint32, seq uint64) string {
	if o.id != "" {
		return o.id
	}
	return job.ServerID(shard, seq)
}

// standing is what a fate says of a job's state. It does not tell delayed from
// ready: that is the index's to say, so that a job falls due without its records
// being written.
type standing byte

const (
	waiting  standing = 0
	reserved standing = 1
	dead     standing = 2
	finished standing = 3 // and retained
	deleted  standing = 4 // and retained
)

// ended says that the job is done with and only retained.
func (s standing) ended() bool { return s >= finished }

// fate is what became of a job since it was added. A job without the record has
// the fate of a fresh one.
type fate struct {
	nextFate
	// Small fields stand together: there is one of these for each job in use.
	standing standing
	// rewritten says that the origin was written more than once, so that it
	// cannot be deleted by SingleDelete.
	rewritten bool
	// timedOut says that the last reservation expired, and that the job was neither
	// handed out, updated nor postponed since: its token may still finish the job.
	timedOut   bool
	priority   uint32
	attempts   uint32
	generation uint32
	reserves   uint32
	timeouts   uint32
	releases   uint32
	buries     uint32
	kicks      uint32
	// ttrMS and maxAttempts are those in force; the origin has the first.
	maxAttempts uint32
	// revision counts the times that this record was written, from 1 on.
	revision uint32
	// movedTo is the topic that the job was moved to; 0: it is where it was added. The
	// origin, which has the body, need not be written again then.
	movedTo       uint32
	dueMS         int64
	lastDelayMS   int64
	reservedUntil int64  // of an ended job: retained until then
	rank          uint64 // place among the dead
	ttrMS         int64
	diedMS        int64 // when it died, or ended; meaningful while it is dead or has
	reason        string
	// lastError is the last reason that a consumer gave; reason may be newer
	// and the server's.
	lastError string
	// history is what happened to the job, if its topic retains jobs; see
	// history.go.
	history string
}

func freshFate(o *origin) fate {
	return fate{
		priority: o.priority, dueMS: o.dueMS, lastDelayMS: o.dueMS - o.createdMS,
		ttrMS: o.ttrMS, maxAttempts: o.maxAttempts, revision: 1,
	}
}

const fateFixed = 1 + 1 + 1 + 10*4 + 6*8 + 2

func (f *fate) counters() [10]*uint32 {
	return [...]*uint32{
		&f.priority, &f.attempts, &f.generation, &f.reserves, &f.timeouts, &f.releases, &f.buries, &f.kicks,
		&f.maxAttempts, &f.revision,
	}
}

func (f *fate) instants() [5]*int64 {
	return [...]*int64{&f.dueMS, &f.lastDelayMS, &f.reservedUntil, &f.ttrMS, &f.diedMS}
}

// Flags of a fate, on disk.
const (
	flagRewritten = 1 << iota
	flagMoved     // movedTo follows the rank
	flagHistory   // the history follows the last error
	flagTimedOut
)

func (f *fate) flags() (flags byte) {
	if f.rewritten {
		flags |= flagRewritten
	}
	if f.movedTo != 0 {
		flags |= flagMoved
	}
	if f.history != "" {
		flags |= flagHistory
	}
	if f.timedOut {
		flags |= flagTimedOut
	}
	return flags
}

func (f *fate) append(b []byte, format byte) []byte {
	b = append(b, format, byte(f.standing), f.flags())
	for _, p := range f.counters() {
		b = binary.BigEndian.AppendUint32(b, *p)
	}
	for _, p := range f.instants() {
		b = binary.BigEndian.AppendUint64(b, uint64(*p))
	}
	b = binary.BigEndian.AppendUint64(b, f.rank)
	if f.movedTo != 0 {
		b = binary.BigEndian.AppendUint32(b, f.movedTo)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(f.lastError))) // job.MaxReasonBytes is less
	b = append(b, f.lastError...)
	if f.history != "" {
		b = binary.BigEndian.AppendUint16(b, uint16(len(f.history))) // history.go bounds it
		b = append(b, f.history...)
	}
	return append(f.nextFate.append(b, format), f.reason...)
}

func decodeFate(b []byte) (f fate, err error) {
	if err := checkVersion("job state record", b, fateVersion, nextFateVersion); err != nil {
		return fate{}, err
	}
	if len(b) < fateFixed {
		return fate{}, fmt.Errorf("job state record of %d bytes: %w", len(b), errShort)
	}
	f.standing = standing(b[1])
	if f.standing > deleted {
		return fate{}, fmt.Errorf("job state record has the unknown state %d", b[1])
	}
	flags := b[2]
	if flags > flagRewritten|flagMoved|flagHistory|flagTimedOut {
		return fate{}, fmt.Errorf("job state record has the unknown flags %x", flags)
	}
	f.rewritten, f.timedOut = flags&flagRewritten != 0, flags&flagTimedOut != 0
	rest := b[3:]
	for _, p := range f.counters() {
		*p = binary.BigEndian.Uint32(rest)
		rest = rest[4:]
	}
	for _, p := range f.instants() {
		*p = int64(binary.BigEndian.Uint64(rest))
		rest = rest[8:]
	}
	f.rank = binary.BigEndian.Uint64(rest)
	rest = rest[8:]
	if flags&flagMoved != 0 {
		if len(rest) < 4+2 {
			return fate{}, fmt.Errorf("job state record's topic: %w", errShort)
		}
		if f.movedTo = binary.BigEndian.Uint32(rest); f.movedTo == 0 {
			return fate{}, fmt.Errorf("job state record says that the job was moved, but not where")
		}
		rest = rest[4:]
	}
	errorLen := int(binary.BigEndian.Uint16(rest))
	if rest = rest[2:]; len(rest) < errorLen {
		return fate{}, fmt.Errorf("job state record's last error: %w", errShort)
	}
	f.lastError, rest = string(rest[:errorLen]), rest[errorLen:]
	if flags&flagHistory != 0 {
		if len(rest) < 2 || len(rest)-2 < int(binary.BigEndian.Uint16(rest)) || binary.BigEndian.Uint16(rest) == 0 {
			return fate{}, fmt.Errorf("job state record's history: %w", errShort)
		}
		n := 2 + int(binary.BigEndian.Uint16(rest))
		f.history, rest = string(rest[2:n]), rest[n:]
	}
	if rest, err = f.nextFate.decode(rest, b[0]); err != nil {
		return fate{}, err
	}
	f.reason = string(rest)
	return f, nil
}

// place is where a job of this fate stands in the list of the given state.
func (f *fate) place(state jobpb.State, seq uint64) place {
	switch state {
	case jobpb.State_STATE_DELAYED:
		return place{instant: f.dueMS, seq: seq, carried: f.priority}
	case jobpb.State_STATE_READY:
		return place{priority: f.priority, instant: f.dueMS, seq: seq}
	case jobpb.State_STATE_RESERVED, stateEnded:
		return place{instant: f.reservedUntil, seq: seq}
	case listExpiring:
		return place{instant: f.dueMS, seq: seq}
	default:
		return place{instant: int64(f.rank), seq: seq}
	}
}

// topicRecord is what is kept of a topic.
type topicRecord struct {
	number     uint32
	counts     [listCount]uint64 // jobs by list
	added      uint64
	finished   uint64
	deleted    uint64
	timeouts   uint64
	died       uint64
	rank       uint64 // of the next job to die
	urgent     uint64 // ready jobs with a priority below job.UrgentBelow
	pauses     uint64
	emptySince int64 // FSM clock; meaningful while the topic has no jobs
	// pausedUntil is when Advance ends the pause, pauseMS how long it is in
	// all. Both are 0 while the topic is not paused, and only then.
	pausedUntil int64
	pauseMS     int64
	// heads are the first places of the lists, zero for an empty one. With
	// them nobody has to look for the head of a list from its beginning, where
	// the tombstones are.
	heads [listCount]place
	// bucket is that of a topic with a rate, nil for any other.
	bucket *bucket
	// covered is up to where ready jobs are listed as expiring: see expire.go.
	covered place
	expired uint64 // jobs that nobody took in time
}

// stateCount is one more than the last state that has a list.
const stateCount = int(stateEnded) + 1

const (
	topicLen  = 1 + 4 + 16*8 + (stateCount-1)*placeLen
	bucketLen = 3 * 8 // follows when the topic has a rate
)

// stateEnded stands for STATE_DELETED too where lists are concerned: a topic has
// one list of the jobs that it retains.
const stateEnded = jobpb.State_STATE_FINISHED

// listed is the state in whose list a job of the given state stands.
func listed(s jobpb.State) jobpb.State { return min(s, stateEnded) }

func (r *topicRecord) numbers() [13]*uint64 {
	return [...]*uint64{
		&r.counts[jobpb.State_STATE_DELAYED], &r.counts[jobpb.State_STATE_READY],
		&r.counts[jobpb.State_STATE_RESERVED], &r.counts[jobpb.State_STATE_DEAD],
		&r.counts[stateEnded],
		&r.added, &r.finished, &r.deleted, &r.timeouts, &r.died, &r.rank,
		&r.urgent, &r.pauses,
	}
}

func (r *topicRecord) instants() [3]*int64 {
	return [...]*int64{&r.emptySince, &r.pausedUntil, &r.pauseMS}
}

func (r *topicRecord) paused() bool { return r.pausedUntil != 0 }

// jobs counts all jobs, those that are only retained too: they keep the topic.
func (r *topicRecord) jobs() uint64 {
	var n uint64
	for _, c := range r.counts[:stateCount] {
		n += c
	}
	return n
}

func (r *topicRecord) append(b []byte) []byte {
	b = append(b, topicVersion)
	b = binary.BigEndian.AppendUint32(b, r.number)
	for _, p := range r.numbers() {
		b = binary.BigEndian.AppendUint64(b, *p)
	}
	for _, p := range r.instants() {
		b = binary.BigEndian.AppendUint64(b, uint64(*p))
	}
	for _, p := range r.heads[1:stateCount] {
		b = p.append(b)
	}
	if r.bucket != nil {
		for _, v := range [bucketLen / 8]int64{r.bucket.tokens, r.bucket.at, r.bucket.since} {
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		}
	}
	if r.covered == (place{}) && r.expired == 0 {
		return b
	}
	b = r.covered.append(b)
	for _, n := range [...]uint64{r.expired, r.counts[listExpiring]} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return r.heads[listExpiring].append(b)
}

// expiryLen is the length of what topics that know of expiry have at the end of
// their record.
const expiryLen = placeLen + 2*8 + placeLen

func decodeTopic(b []byte) (r topicRecord, err error) {
	if err := checkVersion("topic record", b, topicVersion); err != nil {
		return topicRecord{}, err
	}
	switch len(b) - topicLen {
	case 0, bucketLen, expiryLen, bucketLen + expiryLen:
	default:
		return topicRecord{}, fmt.Errorf("topic record has %d bytes, want %d, with a rate %d more, with expiry %d more", len(b), topicLen, bucketLen, expiryLen)
	}
	r.number = binary.BigEndian.Uint32(b[1:])
	rest := b[5:]
	for _, p := range r.numbers() {
		*p = binary.BigEndian.Uint64(rest)
		rest = rest[8:]
	}
	for _, p := range r.instants() {
		*p = int64(binary.BigEndian.Uint64(rest))
		rest = rest[8:]
	}
	for s := range r.heads[1:stateCount] {
		r.heads[s+1] = decodePlace(rest)
		rest = rest[placeLen:]
	}
	if len(rest)%expiryLen == bucketLen {
		r.bucket = &bucket{}
		for _, p := range [...]*int64{&r.bucket.tokens, &r.bucket.at, &r.bucket.since} {
			*p = int64(binary.BigEndian.Uint64(rest))
			rest = rest[8:]
		}
	}
	if len(rest) == 0 {
		return r, nil
	}
	r.covered, rest = decodePlace(rest), rest[placeLen:]
	for _, p := range [...]*uint64{&r.expired, &r.counts[listExpiring]} {
		*p = binary.BigEndian.Uint64(rest)
		rest = rest[8:]
	}
	if r.covered == (place{}) && r.expired == 0 {
		return topicRecord{}, errors.New("topic record speaks of expiry without a reason")
	}
	r.heads[listExpiring] = decodePlace(rest)
	return r, nil
}

// checkVersion refuses records that this release cannot read.
func checkVersion(what string, b []byte, known ...byte) error {
	if len(b) == 0 {
		return fmt.Errorf("%s is empty: %w", what, errShort)
	}
	if !slices.Contains(known, b[0]) {
		return fmt.Errorf("%s has format version %d, this release knows only %d: it was written by another release; run that one", what, b[0], known[0])
	}
	return nil
}
