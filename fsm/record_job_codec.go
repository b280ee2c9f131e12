package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"

	"tarry/job/jobpb"
)

// Versions of a job's two records, the first byte of each. The status is written in the
// format of the cluster version (op_migrate.go).
const (
	specVersion   = 3
	statusVersion = 4
)

const specFixed = 1 + 1 + 4 + 4 + 5*8 + 4 + 1

// append encodes the spec and the body.
func (spec *jobSpec) append(b, body []byte) []byte {
	b = append(b, specVersion, byte(spec.bodyKind))
	b = binary.BigEndian.AppendUint32(b, spec.topic)
	b = binary.BigEndian.AppendUint32(b, spec.priority)
	for _, v := range [...]int64{spec.createdMS, spec.delayMS, spec.dueRequest, spec.dueMS, spec.ttrMS} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	b = binary.BigEndian.AppendUint32(b, spec.maxAttempts)
	b = append(b, byte(len(spec.id)))
	b = append(b, spec.id...)
	b = binary.AppendUvarint(b, uint64(len(spec.options)))
	b = append(b, spec.options...)
	return append(b, body...)
}

// decodeSpec reads a record; the body it returns aliases b.
func decodeSpec(b []byte) (spec jobSpec, body []byte, err error) {
	if err := checkVersion("job record", b, specVersion); err != nil {
		return jobSpec{}, nil, err
	}
	if len(b) < specFixed {
		return jobSpec{}, nil, fmt.Errorf("job record of %d bytes: %w", len(b), errShort)
	}
	spec.bodyKind = jobpb.BodyKind(b[1])
	spec.topic = binary.BigEndian.Uint32(b[2:])
	spec.priority = binary.BigEndian.Uint32(b[6:])
	for i, p := range [...]*int64{&spec.createdMS, &spec.delayMS, &spec.dueRequest, &spec.dueMS, &spec.ttrMS} {
		*p = int64(binary.BigEndian.Uint64(b[10+8*i:]))
	}
	spec.maxAttempts = binary.BigEndian.Uint32(b[50:])
	idLen := int(b[54])
	rest := b[specFixed:]
	if len(rest) < idLen {
		return jobSpec{}, nil, fmt.Errorf("job record's id: %w", errShort)
	}
	spec.id = string(rest[:idLen])
	rest = rest[idLen:]
	optionsLen, n := binary.Uvarint(rest)
	switch {
	case n <= 0 || optionsLen > uint64(len(rest)-n):
		return jobSpec{}, nil, fmt.Errorf("job record's options: %w", errShort)
	case n > 1 && rest[n-1] == 0:
		return jobSpec{}, nil, errors.New("job record's options: their length is not encoded in the shortest form")
	}
	if rest = rest[n:]; optionsLen > 0 {
		spec.options = string(rest[:optionsLen])
	}
	body = rest[optionsLen:]
	return spec, body, nil
}

const statusFixed = 1 + 1 + 1 + 10*4 + 7*8 + 2

func (s *jobStatus) counters() [10]*uint32 {
	return [...]*uint32{
		&s.priority, &s.attempts, &s.generation, &s.reserves, &s.timeouts, &s.releases, &s.buries, &s.kicks,
		&s.maxAttempts, &s.revision,
	}
}

func (s *jobStatus) instants() [6]*int64 {
	return [...]*int64{&s.dueMS, &s.lastDelayMS, &s.untilMS, &s.ttrMS, &s.sinceMS, &s.modifiedMS}
}

// Flags of a status, on disk.
const (
	flagRewritten = 1 << iota
	flagMoved     // movedTo follows the rank
	flagHistory   // the history follows the last error
	flagTimedOut
	flagReservedBy // reservedBy follows the history
	flagExpires    // expiresMS follows reservedBy
)

func (s *jobStatus) flags() (flags byte) {
	if s.rewritten {
		flags |= flagRewritten
	}
	if s.movedTo != 0 {
		flags |= flagMoved
	}
	if s.history != "" {
		flags |= flagHistory
	}
	if s.timedOut {
		flags |= flagTimedOut
	}
	if s.reservedBy != "" {
		flags |= flagReservedBy
	}
	if s.expiresMS != 0 {
		flags |= flagExpires
	}
	return flags
}

func (s *jobStatus) append(b []byte, format byte) []byte {
	b = append(b, format, byte(s.phase), s.flags())
	for _, p := range s.counters() {
		b = binary.BigEndian.AppendUint32(b, *p)
	}
	for _, p := range s.instants() {
		b = binary.BigEndian.AppendUint64(b, uint64(*p))
	}
	b = binary.BigEndian.AppendUint64(b, s.rank)
	if s.movedTo != 0 {
		b = binary.BigEndian.AppendUint32(b, s.movedTo)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(s.lastError))) // job.MaxReasonBytes is less
	b = append(b, s.lastError...)
	if s.history != "" {
		b = binary.BigEndian.AppendUint16(b, uint16(len(s.history))) // record_history.go bounds it
		b = append(b, s.history...)
	}
	if s.reservedBy != "" {
		b = append(b, byte(len(s.reservedBy))) // job.MaxConsumerBytes is less
		b = append(b, s.reservedBy...)
	}
	if s.expiresMS != 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(s.expiresMS))
	}
	return append(s.nextStatus.append(b, format), s.reason...)
}

func (s *jobStatus) decodeExpires(b []byte) (rest []byte, err error) {
	if len(b) < 8 {
		return nil, fmt.Errorf("job state record's expiry: %w", errShort)
	}
	if s.expiresMS = int64(binary.BigEndian.Uint64(b)); s.expiresMS <= 0 {
		return nil, fmt.Errorf("job state record has the expiry %d", s.expiresMS)
	}
	return b[8:], nil
}

func decodeStatus(b []byte) (s jobStatus, err error) {
	if err := checkVersion("job state record", b, statusVersion, nextStatusVersion); err != nil {
		return jobStatus{}, err
	}
	if len(b) < statusFixed {
		return jobStatus{}, fmt.Errorf("job state record of %d bytes: %w", len(b), errShort)
	}
	s.phase = phase(b[1])
	if s.phase > phaseDeleted {
		return jobStatus{}, fmt.Errorf("job state record has the unknown state %d", b[1])
	}
	flags := b[2]
	if flags > flagRewritten|flagMoved|flagHistory|flagTimedOut|flagReservedBy|flagExpires {
		return jobStatus{}, fmt.Errorf("job state record has the unknown flags %x", flags)
	}
	s.rewritten, s.timedOut = flags&flagRewritten != 0, flags&flagTimedOut != 0
	rest := b[3:]
	for _, p := range s.counters() {
		*p = binary.BigEndian.Uint32(rest)
		rest = rest[4:]
	}
	for _, p := range s.instants() {
		*p = int64(binary.BigEndian.Uint64(rest))
		rest = rest[8:]
	}
	s.rank = binary.BigEndian.Uint64(rest)
	rest = rest[8:]
	if flags&flagMoved != 0 {
		if len(rest) < 4+2 {
			return jobStatus{}, fmt.Errorf("job state record's topic: %w", errShort)
		}
		if s.movedTo = binary.BigEndian.Uint32(rest); s.movedTo == 0 {
			return jobStatus{}, fmt.Errorf("job state record has the flag of a move, but no topic")
		}
		rest = rest[4:]
	}
	errorLen := int(binary.BigEndian.Uint16(rest))
	if rest = rest[2:]; len(rest) < errorLen {
		return jobStatus{}, fmt.Errorf("job state record's last error: %w", errShort)
	}
	s.lastError, rest = string(rest[:errorLen]), rest[errorLen:]
	if flags&flagHistory != 0 {
		if len(rest) < 2 || len(rest)-2 < int(binary.BigEndian.Uint16(rest)) || binary.BigEndian.Uint16(rest) == 0 {
			return jobStatus{}, fmt.Errorf("job state record's history: %w", errShort)
		}
		n := 2 + int(binary.BigEndian.Uint16(rest))
		s.history, rest = string(rest[2:n]), rest[n:]
	}
	if flags&flagReservedBy != 0 {
		if s.phase != phaseReserved {
			return jobStatus{}, fmt.Errorf("job state record has a consumer, but the job is not reserved")
		}
		if len(rest) < 1 || rest[0] == 0 || len(rest)-1 < int(rest[0]) {
			return jobStatus{}, fmt.Errorf("job state record's consumer: %w", errShort)
		}
		n := 1 + int(rest[0])
		s.reservedBy, rest = string(rest[1:n]), rest[n:]
	}
	if flags&flagExpires != 0 {
		if rest, err = s.decodeExpires(rest); err != nil {
			return jobStatus{}, err
		}
	}
	if rest, err = s.nextStatus.decode(rest, b[0]); err != nil {
		return jobStatus{}, err
	}
	s.reason = string(rest)
	return s, nil
}
