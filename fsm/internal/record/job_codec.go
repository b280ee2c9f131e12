package record

import (
	"encoding/binary"
	"errors"
	"fmt"

	"tarry/job/jobpb"
)

// Versions of a job's two records, the first byte of each. The status is written in the
// format of the cluster version (fsm/version.go).
const (
	SpecVersion   = 3
	StatusVersion = 4
)

const specFixed = 1 + 1 + 4 + 4 + 5*8 + 4 + 1

// Append encodes the spec and the body.
func (spec *Spec) Append(b, body []byte) []byte {
	b = append(b, SpecVersion, byte(spec.BodyKind))
	b = binary.BigEndian.AppendUint32(b, spec.Topic)
	b = binary.BigEndian.AppendUint32(b, spec.Priority)
	for _, v := range [...]int64{spec.CreatedMS, spec.DelayMS, spec.DueRequest, spec.DueMS, spec.TtrMS} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	b = binary.BigEndian.AppendUint32(b, spec.MaxAttempts)
	b = append(b, byte(len(spec.ID)))
	b = append(b, spec.ID...)
	b = binary.AppendUvarint(b, uint64(len(spec.Options)))
	b = append(b, spec.Options...)
	return append(b, body...)
}

// DecodeSpec reads a record; the body it returns aliases b.
func DecodeSpec(b []byte) (spec Spec, body []byte, err error) {
	if err := checkVersion("job record", b, SpecVersion); err != nil {
		return Spec{}, nil, err
	}
	if len(b) < specFixed {
		return Spec{}, nil, fmt.Errorf("job record of %d bytes: %w", len(b), ErrShort)
	}
	spec.BodyKind = jobpb.BodyKind(b[1])
	spec.Topic = binary.BigEndian.Uint32(b[2:])
	spec.Priority = binary.BigEndian.Uint32(b[6:])
	for i, p := range [...]*int64{&spec.CreatedMS, &spec.DelayMS, &spec.DueRequest, &spec.DueMS, &spec.TtrMS} {
		*p = int64(binary.BigEndian.Uint64(b[10+8*i:]))
	}
	spec.MaxAttempts = binary.BigEndian.Uint32(b[50:])
	idLen := int(b[54])
	rest := b[specFixed:]
	if len(rest) < idLen {
		return Spec{}, nil, fmt.Errorf("job record's id: %w", ErrShort)
	}
	spec.ID = string(rest[:idLen])
	rest = rest[idLen:]
	optionsLen, n := binary.Uvarint(rest)
	switch {
	case n <= 0 || optionsLen > uint64(len(rest)-n):
		return Spec{}, nil, fmt.Errorf("job record's options: %w", ErrShort)
	case n > 1 && rest[n-1] == 0:
		return Spec{}, nil, errors.New("job record's options: their length is not encoded in the shortest form")
	}
	if rest = rest[n:]; optionsLen > 0 {
		spec.Options = string(rest[:optionsLen])
	}
	body = rest[optionsLen:]
	return spec, body, nil
}

const StatusFixed = 1 + 1 + 1 + 10*4 + 7*8 + 2

func (s *Status) counters() [10]*uint32 {
	return [...]*uint32{
		&s.Priority, &s.Attempts, &s.Generation, &s.Reserves, &s.Timeouts, &s.Releases, &s.Buries, &s.Kicks,
		&s.MaxAttempts, &s.Revision,
	}
}

func (s *Status) instants() [6]*int64 {
	return [...]*int64{&s.DueMS, &s.LastDelayMS, &s.untilMS, &s.TtrMS, &s.sinceMS, &s.ModifiedMS}
}

// Flags of a status, on disk.
const (
	flagRewritten = 1 << iota
	flagMoved     // MovedTo follows the rank
	flagHistory   // the history follows the last error
	flagTimedOut
	flagReservedBy // ReservedBy follows the history
	flagExpires    // expiresMS follows ReservedBy
)

func (s *Status) flags() (flags byte) {
	if s.Rewritten {
		flags |= flagRewritten
	}
	if s.MovedTo != 0 {
		flags |= flagMoved
	}
	if s.History != "" {
		flags |= flagHistory
	}
	if s.TimedOut {
		flags |= flagTimedOut
	}
	if s.ReservedBy != "" {
		flags |= flagReservedBy
	}
	if s.ExpiresMS != 0 {
		flags |= flagExpires
	}
	return flags
}

func (s *Status) Append(b []byte, format byte) []byte {
	b = append(b, format, byte(s.Phase), s.flags())
	for _, p := range s.counters() {
		b = binary.BigEndian.AppendUint32(b, *p)
	}
	for _, p := range s.instants() {
		b = binary.BigEndian.AppendUint64(b, uint64(*p))
	}
	b = binary.BigEndian.AppendUint64(b, s.Rank)
	if s.MovedTo != 0 {
		b = binary.BigEndian.AppendUint32(b, s.MovedTo)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(s.LastError))) // job.MaxReasonBytes is less
	b = append(b, s.LastError...)
	if s.History != "" {
		b = binary.BigEndian.AppendUint16(b, uint16(len(s.History))) // history.go bounds it
		b = append(b, s.History...)
	}
	if s.ReservedBy != "" {
		b = append(b, byte(len(s.ReservedBy))) // job.MaxConsumerBytes is less
		b = append(b, s.ReservedBy...)
	}
	if s.ExpiresMS != 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(s.ExpiresMS))
	}
	return append(s.nextStatus.append(b, format), s.Reason...)
}

func (s *Status) decodeExpires(b []byte) (rest []byte, err error) {
	if len(b) < 8 {
		return nil, fmt.Errorf("job state record's expiry: %w", ErrShort)
	}
	if s.ExpiresMS = int64(binary.BigEndian.Uint64(b)); s.ExpiresMS <= 0 {
		return nil, fmt.Errorf("job state record has the expiry %d", s.ExpiresMS)
	}
	return b[8:], nil
}

func decodeStatus(b []byte) (s Status, err error) {
	if err := checkVersion("job state record", b, StatusVersion, nextStatusVersion); err != nil {
		return Status{}, err
	}
	if len(b) < StatusFixed {
		return Status{}, fmt.Errorf("job state record of %d bytes: %w", len(b), ErrShort)
	}
	s.Phase = phase(b[1])
	if s.Phase > PhaseDeleted {
		return Status{}, fmt.Errorf("job state record has the unknown state %d", b[1])
	}
	flags := b[2]
	if flags > flagRewritten|flagMoved|flagHistory|flagTimedOut|flagReservedBy|flagExpires {
		return Status{}, fmt.Errorf("job state record has the unknown flags %x", flags)
	}
	s.Rewritten, s.TimedOut = flags&flagRewritten != 0, flags&flagTimedOut != 0
	rest := b[3:]
	for _, p := range s.counters() {
		*p = binary.BigEndian.Uint32(rest)
		rest = rest[4:]
	}
	for _, p := range s.instants() {
		*p = int64(binary.BigEndian.Uint64(rest))
		rest = rest[8:]
	}
	s.Rank = binary.BigEndian.Uint64(rest)
	rest = rest[8:]
	if flags&flagMoved != 0 {
		if len(rest) < 4+2 {
			return Status{}, fmt.Errorf("job state record's topic: %w", ErrShort)
		}
		if s.MovedTo = binary.BigEndian.Uint32(rest); s.MovedTo == 0 {
			return Status{}, fmt.Errorf("job state record has the flag of a move, but no topic")
		}
		rest = rest[4:]
	}
	errorLen := int(binary.BigEndian.Uint16(rest))
	if rest = rest[2:]; len(rest) < errorLen {
		return Status{}, fmt.Errorf("job state record's last error: %w", ErrShort)
	}
	s.LastError, rest = string(rest[:errorLen]), rest[errorLen:]
	if flags&flagHistory != 0 {
		if len(rest) < 2 || len(rest)-2 < int(binary.BigEndian.Uint16(rest)) || binary.BigEndian.Uint16(rest) == 0 {
			return Status{}, fmt.Errorf("job state record's history: %w", ErrShort)
		}
		n := 2 + int(binary.BigEndian.Uint16(rest))
		s.History, rest = string(rest[2:n]), rest[n:]
	}
	if flags&flagReservedBy != 0 {
		if s.Phase != PhaseReserved {
			return Status{}, fmt.Errorf("job state record has a consumer, but the job is not reserved")
		}
		if len(rest) < 1 || rest[0] == 0 || len(rest)-1 < int(rest[0]) {
			return Status{}, fmt.Errorf("job state record's consumer: %w", ErrShort)
		}
		n := 1 + int(rest[0])
		s.ReservedBy, rest = string(rest[1:n]), rest[n:]
	}
	if flags&flagExpires != 0 {
		if rest, err = s.decodeExpires(rest); err != nil {
			return Status{}, err
		}
	}
	if rest, err = s.nextStatus.decode(rest, b[0]); err != nil {
		return Status{}, err
	}
	s.Reason = string(rest)
	return s, nil
}
