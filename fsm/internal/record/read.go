package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job"
)

// ReadJob reads a job, with a copy of its body if withBody; nil: there is none.
func ReadJob(r pebble.Reader, seq uint64, withBody bool) (*Job, error) {
	var keyBuf [9]byte
	var rec *Job
	err := ReadKey(r, AppendSeqKey(keyBuf[:0], SpaceSpec, seq), func(value []byte) error {
		spec, body, err := DecodeSpec(value)
		if err != nil {
			return err
		}
		rec = &Job{Seq: seq, Spec: spec, BodyLen: len(body)}
		if withBody {
			rec.Body, rec.OwnBody = bytes.Clone(body), true
			if rec.Body == nil {
				rec.Body = []byte{}
			}
		}
		return nil
	})
	if err != nil || rec == nil {
		return nil, err
	}
	rec.Status = NewStatus(&rec.Spec)
	err = ReadKey(r, AppendSeqKey(keyBuf[:0], SpaceStatus, seq), func(value []byte) (err error) {
		rec.Status, err = decodeStatus(value)
		return err
	})
	return rec, err
}

// ReadBody reads a copy of a job's body.
func ReadBody(r pebble.Reader, seq uint64) (copied []byte, err error) {
	var keyBuf [9]byte
	err = ReadKey(r, AppendSeqKey(keyBuf[:0], SpaceSpec, seq), func(value []byte) error {
		_, body, err := DecodeSpec(value)
		copied = append([]byte{}, body...)
		return err
	})
	return copied, err
}

// ListOf returns the list that a stored job is in. A waiting job whose due instant has
// passed is delayed until an Advance moves its place.
func ListOf(r pebble.Reader, clockMS int64, rec *Job) (List, error) {
	if list := rec.ListByPhase(clockMS); list != ListNone {
		return list, nil
	}
	delayed, err := HasPlace(r, ListID{rec.Topic(), ListDelayed}, rec.Place(ListDelayed))
	if err != nil {
		return ListNone, err
	}
	return WaitingList(delayed), nil
}

// ListByPhase returns the list that the job is in; ListNone: its records leave open
// whether it is delayed or ready.
func (rec *Job) ListByPhase(clockMS int64) List {
	switch rec.Status.Phase {
	case PhaseReserved:
		return ListReserved
	case PhaseDead:
		return ListDead
	case PhaseFinished, PhaseDeleted:
		return ListEnded
	}
	if rec.Status.DueMS > clockMS {
		return ListDelayed
	}
	return ListNone
}

func WaitingList(delayed bool) List {
	if delayed {
		return ListDelayed
	}
	return ListReady
}

func HasPlace(r pebble.Reader, l ListID, p Place) (found bool, err error) {
	var keyBuf [indexKeyLen]byte
	err = ReadKey(r, l.AppendKey(keyBuf[:0], p), func([]byte) error { found = true; return nil })
	return found, err
}

// Places reads the index of a store.
type Places struct{ it *pebble.Iterator }

// PlacesFrom opens a list at a place. Close the result.
func PlacesFrom(r pebble.Reader, l ListID, from Place) (*Places, error) {
	it, err := r.NewIter(&pebble.IterOptions{
		LowerBound: l.AppendKey(nil, from),
		UpperBound: l.appendEnd(nil),
	})
	if err != nil {
		return nil, fmt.Errorf("read a list: %w", err)
	}
	it.First()
	return &Places{it}, nil
}

func (s *Places) Next() (Place, bool, error) {
	p, ok, err := s.Peek()
	if ok {
		s.Step()
	}
	return p, ok, err
}

// Peek returns the next place without moving on; false: the list has ended.
func (s *Places) Peek() (Place, bool, error) {
	if !s.it.Valid() {
		return Place{}, false, s.it.Error()
	}
	value, err := s.it.ValueAndErr()
	if err != nil {
		return Place{}, false, err
	}
	_, p, err := DecodeIndex(s.it.Key(), value)
	return p, err == nil, err
}

func (s *Places) Step() { s.it.Next() }

// Seek moves to the first place that is not below p.
func (s *Places) Seek(l ListID, p Place) { s.it.SeekGE(l.AppendKey(nil, p)) }

func (s *Places) Close() error { return s.it.Close() }

// FirstOf returns the first place of a list that is not below from.
func FirstOf(r pebble.Reader, l ListID, from Place) (p Place, ok bool, err error) {
	s, err := PlacesFrom(r, l, from)
	if err != nil {
		return Place{}, false, err
	}
	p, ok, err = s.Next()
	return p, ok, errors.Join(err, s.Close())
}

// TopicName returns the name of the topic with a number.
func TopicName(r pebble.Reader, number uint32) (name string, err error) {
	err = ReadKey(r, AppendNumberKey(nil, number), func(value []byte) error {
		name = string(value)
		return nil
	})
	if err == nil && name == "" {
		err = fmt.Errorf("topic %d has no name", number)
	}
	return name, err
}

func DecodeSeq(value []byte) (uint64, error) {
	if len(value) != 8 {
		return 0, fmt.Errorf("seq of %d bytes, want 8", len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}

// Scan calls f for every pair from lower up to, not including, upper. f must not
// keep the slices.
func Scan(r pebble.Reader, lower, upper []byte, f func(key, value []byte) error) (err error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return fmt.Errorf("scan the store: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for valid := it.First(); valid; valid = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("scan the store: %w", err)
		}
		if err := f(it.Key(), value); err != nil {
			return err
		}
	}
	return nil
}

// ErrEnough, returned by the function that a scan of a view calls, ends the scan early.
var ErrEnough = errors.New("enough")

// FindID returns the seq of an id; 0: none. fromServer reports whether the server made the
// id; then the job may not exist, or may have an id of its producer. buf is scratch space for
// the key, or nil.
func FindID(r pebble.Reader, shard uint32, id string, buf []byte) (seq uint64, fromServer bool, err error) {
	if job.IsServerID(id) {
		of, seq, ok := job.ParseServerID(id)
		if !ok || of != shard {
			return 0, true, nil
		}
		return seq, true, nil
	}
	err = ReadKey(r, AppendNameKey(buf[:0], SpaceID, id), func(value []byte) error {
		seq, err = DecodeSeq(value)
		return err
	})
	return seq, false, err
}
