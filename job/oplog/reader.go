package oplog

import (
	"encoding/binary"
	"errors"
	"fmt"

	"tarry/job"
	"tarry/job/jobpb"
)

// OpReader reads a run of operations one by one, each into the same messages: an entry may
// have thousands.
type OpReader struct {
	rest  []byte
	read  int
	epoch uint64 // of the entry's clock
	// roundedDown: the entry's time was.
	roundedDown bool
	heard       Heard  // that the entry's header has
	version     uint32 // refuses what is newer
	frame       []byte // op, encoded
	number      uint64 // of op
	op          jobpb.Op
	kind        jobpb.Op_Add // of op if it is an add, the most frequent one
	add         jobpb.Add
}

var errFrame = errors.New("it is cut short or not framed as an operation")

// ReadEntry makes r read the operations of an entry. It returns the leader's clock, in Unix
// milliseconds.
func (r *OpReader) ReadEntry(data []byte) (nowMS int64, err error) {
	if len(data) == 0 {
		return 0, errors.New("log entry is empty")
	}
	if data[0] != EntryVersion {
		return 0, fmt.Errorf("log entry has version %d, this node knows only %d: it was written by a newer release; upgrade this node", data[0], EntryVersion)
	}
	if len(data) < 2 || data[1] != tagNow {
		return 0, fmt.Errorf("log entry of version %d does not decode: it does not begin with its time", EntryVersion)
	}
	now, n := binary.Uvarint(data[2:])
	if n <= 0 {
		return 0, fmt.Errorf("log entry of version %d does not decode: its time is cut short", EntryVersion)
	}
	r.rest, r.read, r.epoch, r.roundedDown, r.heard, r.version = data[2+n:], 0, 0, false, Heard{}, job.MaxVersion
	if len(r.rest) > 0 && r.rest[0] == tagEpoch {
		if r.epoch, n = binary.Uvarint(r.rest[1:]); n <= 0 || r.epoch == 0 {
			return 0, fmt.Errorf("log entry of version %d does not decode: the epoch of its clock is cut short or 0", EntryVersion)
		}
		r.rest = r.rest[1+n:]
	}
	if len(r.rest) > 0 && r.rest[0] == tagRoundedDown {
		if len(r.rest) < 2 || r.rest[1] != 1 {
			return 0, fmt.Errorf("log entry of version %d does not decode: whether its time is rounded is cut short or not 1", EntryVersion)
		}
		r.rest, r.roundedDown = r.rest[2:], true
	}
	if len(r.rest) > 0 && r.rest[0] == tagsHeard[0] {
		if err := r.readHeard(); err != nil {
			return 0, err
		}
	}
	return int64(now), nil
}

// Number returns the number of the operation that Next has returned, that of its field in
// jobpb.Op.
func (r *OpReader) Number() uint64 { return r.number }

// Alone reports whether the operation that Next has returned is the only one.
func (r *OpReader) Alone() bool { return r.read == 1 && len(r.rest) == 0 }

// ClockEpoch returns the epoch of the entry's clock.
func (r *OpReader) ClockEpoch() uint64 { return r.epoch }

// RoundedDown reports whether the entry's time was rounded down to a millisecond.
func (r *OpReader) RoundedDown() bool { return r.roundedDown }

// Heard returns what the entry says of the config group.
func (r *OpReader) Heard() Heard { return r.heard }

// Left returns the number of operations that remain, up to the first one without a frame.
func (r *OpReader) Left() (n int) {
	for _, rest, ok := cutOp(r.rest); ok; _, rest, ok = cutOp(rest) {
		n++
	}
	return n
}

// Next returns the next operation; nil: there are no more. It is valid until the next
// call. Its bodies and strings alias the run, which must not change while they are in use.
// An unknown operation or field is an error.
func (r *OpReader) Next() (*jobpb.Op, error) {
	r.op.Reset()
	r.add.Reset()
	if len(r.rest) == 0 {
		return nil, nil
	}
	frame, rest, ok := cutOp(r.rest)
	if !ok {
		return nil, fmt.Errorf("operation %d does not decode: %w", r.read, errFrame)
	}
	if err := opSchema.check(frame, r.version); err != nil {
		return nil, fmt.Errorf("operation %d: %w", r.read, err)
	}
	if r.number = numberOf(frame); r.number == addNumber {
		r.kind.Add = &r.add
		r.op.Kind = &r.kind // the decoder fills it
	}
	if err := r.op.UnmarshalVTUnsafe(frame); err != nil {
		return nil, fmt.Errorf("operation %d does not decode: %w", r.read, err)
	}
	if r.op.Kind == nil {
		if err := decodeNext(&r.op); err != nil {
			return nil, fmt.Errorf("operation %d does not decode: %w", r.read, err)
		}
	}
	if r.op.Kind == nil {
		return nil, fmt.Errorf("operation %d is empty", r.read)
	}
	r.frame, r.rest = frame, rest
	r.read++
	return &r.op, nil
}

// cutOp splits a run after its first operation.
func cutOp(run []byte) (op, rest []byte, ok bool) {
	if len(run) == 0 || run[0] != tagOp {
		return nil, nil, false
	}
	n, w := binary.Uvarint(run[1:])
	if w <= 0 || n > uint64(len(run)-1-w) {
		return nil, nil, false
	}
	end := 1 + w + int(n)
	return run[1+w : end], run[end:], true
}
