package record

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"tarry/job"
	"tarry/job/jobpb"
)

// In topics with a retention a job's status record ends with its history. So the history
// is written together with the change, costs no key and no read of its own, and is deleted
// with the job. The add is not in it: it follows from the spec.
//
//	count of the events (a byte), events dropped (uvarint), then each event:
//	kind (a byte), state and flags (a byte), ms since the add (uvarint),
//	attempt (uvarint), [due, ms since the add (varint)],
//	[length (uvarint) and text: the consumer of a reserve, else the reason]
//
// historyKept bounds the events; beyond it the oldest is dropped.
const historyKept = job.MaxHistory - 1

// Flags of an event, beside its state.
const (
	eventState = 7
	eventDue   = 8
	eventText  = 16
)

// Cut returns at most the first n bytes of a text, without splitting a character.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// AddEvent returns a copy of the history with one more event.
func AddEvent(history string, createdMS int64, e *jobpb.Event, text string) string {
	count, dropped, events := historyHead(history)
	if count == historyKept {
		rest := eventReader{rest: events}
		rest.next()
		events, dropped = rest.rest, dropped+1
	} else {
		count++
	}
	b := make([]byte, 0, len(history)+len(text)+32)
	b = append(b, count)
	b = binary.AppendUvarint(b, dropped)
	b = append(b, events...)
	flags := byte(e.State)
	if e.DueMs != 0 {
		flags |= eventDue
	}
	if text != "" {
		flags |= eventText
	}
	b = append(b, byte(e.Kind), flags)
	b = binary.AppendUvarint(b, uint64(e.AtMs-createdMS))
	b = binary.AppendUvarint(b, uint64(e.Attempt))
	if e.DueMs != 0 {
		b = binary.AppendVarint(b, e.DueMs-createdMS)
	}
	if text != "" {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	return string(b)
}

// historyHead splits a history into its head and its events.
func historyHead(history string) (count byte, dropped uint64, events string) {
	if history == "" {
		return 0, 0, ""
	}
	r := eventReader{rest: history[1:]}
	dropped = r.uvarint()
	return history[0], dropped, r.rest
}

func DecodeHistory(history string, createdMS int64) (events []*jobpb.Event, dropped uint64, err error) {
	count, dropped, rest := historyHead(history)
	r := eventReader{rest: rest}
	for range count {
		e, text := r.event(createdMS)
		if e.Kind == jobpb.Event_RESERVED {
			e.Consumer = strings.Clone(text)
		} else {
			e.Reason = strings.Clone(text)
		}
		events = append(events, e)
	}
	if r.short || r.rest != "" || count > historyKept {
		return nil, 0, fmt.Errorf("a job's history of %d events and %d bytes is damaged", count, len(history))
	}
	return events, dropped, nil
}

// eventReader reads events from the front of a text. Missing bytes read as zero and set
// short.
type eventReader struct {
	rest  string
	short bool
}

func (r *eventReader) next() { r.event(0) }

func (r *eventReader) event(createdMS int64) (*jobpb.Event, string) {
	kind, flags := r.byte(), r.byte()
	e := &jobpb.Event{Kind: jobpb.Event_Kind(kind), State: jobpb.State(flags & eventState)}
	e.AtMs = createdMS + int64(r.uvarint())
	e.Attempt = uint32(r.uvarint())
	if flags&eventDue != 0 {
		e.DueMs = createdMS + r.varint()
	}
	if flags&eventText == 0 {
		return e, ""
	}
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.rest, r.short = "", true
		return e, ""
	}
	text := r.rest[:n]
	r.rest = r.rest[n:]
	return e, text
}

func (r *eventReader) byte() byte {
	if r.rest == "" {
		r.short = true
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *eventReader) uvarint() uint64 {
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		b := r.byte()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	r.short = true
	return 0
}

func (r *eventReader) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// DescribeHistory returns a job's history as readers see it, the add first.
func (rec *Job) DescribeHistory() (events []*jobpb.Event, dropped uint32, err error) {
	later, n, err := DecodeHistory(rec.Status.History, rec.Spec.CreatedMS)
	if err != nil {
		return nil, 0, err
	}
	added := &jobpb.Event{Kind: jobpb.Event_ADDED, AtMs: rec.Spec.CreatedMS, State: jobpb.State_STATE_READY, DueMs: rec.Spec.DueMS}
	if added.DueMs > added.AtMs {
		added.State = jobpb.State_STATE_DELAYED
	}
	return append([]*jobpb.Event{added}, later...), uint32(min(n, 1<<32-1)), nil
}
