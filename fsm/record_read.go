package fsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// readJob reads a job, with a copy of its body if withBody; nil: there is none.
func readJob(r pebble.Reader, seq uint64, withBody bool) (*record, error) {
	var keyBuf [9]byte
	var rec *record
	err := readKey(r, appendSeqKey(keyBuf[:0], spaceSpec, seq), func(value []byte) error {
		spec, body, err := decodeSpec(value)
		if err != nil {
			return err
		}
		rec = &record{seq: seq, spec: spec, bodyLen: len(body)}
		if withBody {
			rec.body, rec.ownBody = bytes.Clone(body), true
			if rec.body == nil {
				rec.body = []byte{}
			}
		}
		return nil
	})
	if err != nil || rec == nil {
		return nil, err
	}
	rec.status = newStatus(&rec.spec)
	err = readKey(r, appendSeqKey(keyBuf[:0], spaceStatus, seq), func(value []byte) (err error) {
		rec.status, err = decodeStatus(value)
		return err
	})
	return rec, err
}

// readBody reads a copy of a job's body.
func readBody(r pebble.Reader, seq uint64) (copied []byte, err error) {
	var keyBuf [9]byte
	err = readKey(r, appendSeqKey(keyBuf[:0], spaceSpec, seq), func(value []byte) error {
		_, body, err := decodeSpec(value)
		copied = append([]byte{}, body...)
		return err
	})
	return copied, err
}

// listOf returns the list that a stored job is in. A waiting job whose due instant has
// passed is delayed until an Advance moves its place.
func listOf(r pebble.Reader, clockMS int64, rec *record) (listKind, error) {
	if list := rec.listByPhase(clockMS); list != listNone {
		return list, nil
	}
	delayed, err := hasPlace(r, listID{rec.topic(), listDelayed}, rec.place(listDelayed))
	if err != nil {
		return listNone, err
	}
	return waitingList(delayed), nil
}

// listByPhase returns the list that the job is in; listNone: its records leave open
// whether it is delayed or ready.
func (rec *record) listByPhase(clockMS int64) listKind {
	switch rec.status.phase {
	case phaseReserved:
		return listReserved
	case phaseDead:
		return listDead
	case phaseFinished, phaseDeleted:
		return listEnded
	}
	if rec.status.dueMS > clockMS {
		return listDelayed
	}
	return listNone
}

func waitingList(delayed bool) listKind {
	if delayed {
		return listDelayed
	}
	return listReady
}

func hasPlace(r pebble.Reader, l listID, p place) (found bool, err error) {
	var keyBuf [indexKeyLen]byte
	err = readKey(r, l.appendKey(keyBuf[:0], p), func([]byte) error { found = true; return nil })
	return found, err
}

// places reads the index of a store.
type places struct{ it *pebble.Iterator }

// placesFrom opens a list at a place. Close the result.
func placesFrom(r pebble.Reader, l listID, from place) (*places, error) {
	it, err := r.NewIter(&pebble.IterOptions{
		LowerBound: l.appendKey(nil, from),
		UpperBound: l.appendEnd(nil),
	})
	if err != nil {
		return nil, fmt.Errorf("read a list: %w", err)
	}
	it.First()
	return &places{it}, nil
}

func (s *places) next() (place, bool, error) {
	p, ok, err := s.peek()
	if ok {
		s.step()
	}
	return p, ok, err
}

// peek returns the next place without moving on; false: the list has ended.
func (s *places) peek() (place, bool, error) {
	if !s.it.Valid() {
		return place{}, false, s.it.Error()
	}
	value, err := s.it.ValueAndErr()
	if err != nil {
		return place{}, false, err
	}
	_, p, err := decodeIndex(s.it.Key(), value)
	return p, err == nil, err
}

func (s *places) step() { s.it.Next() }

// seek moves to the first place that is not below p.
func (s *places) seek(l listID, p place) { s.it.SeekGE(l.appendKey(nil, p)) }

func (s *places) close() error { return s.it.Close() }

// firstOf returns the first place of a list that is not below from.
func firstOf(r pebble.Reader, l listID, from place) (p place, ok bool, err error) {
	s, err := placesFrom(r, l, from)
	if err != nil {
		return place{}, false, err
	}
	p, ok, err = s.next()
	return p, ok, errors.Join(err, s.close())
}

// topicName returns the name of the topic with a number.
func topicName(r pebble.Reader, number uint32) (name string, err error) {
	err = readKey(r, appendNumberKey(nil, number), func(value []byte) error {
		name = string(value)
		return nil
	})
	if err == nil && name == "" {
		err = fmt.Errorf("topic %d has no name", number)
	}
	return name, err
}

func decodeSeq(value []byte) (uint64, error) {
	if len(value) != 8 {
		return 0, fmt.Errorf("seq of %d bytes, want 8", len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}

// scan calls f for every pair from lower up to, not including, upper. f must not
// keep the slices.
func scan(r pebble.Reader, lower, upper []byte, f func(key, value []byte) error) (err error) {
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
