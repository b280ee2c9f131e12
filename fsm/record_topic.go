package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// topicVersion is the first byte of a topic record.
const topicVersion = 2

// topicRecord is the stored part of a topic.
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
	// pausedUntil is when Advance ends the pause, pauseMS its whole length. Both are 0 if
	// and only if the topic is not paused.
	pausedUntil int64
	pauseMS     int64
	// heads are the first places of the lists; zero: the list is empty. With them no
	// search for a head passes the tombstones at the beginning of a list.
	heads  [listCount]place
	bucket *bucket // nil without a rate
	// expiryIndexed is the place up to which ready jobs are also in listExpiring; see
	// rule_expiry.go.
	expiryIndexed place
	expired       uint64 // jobs that were not reserved in time
}

const (
	topicLen  = 1 + 4 + 16*8 + stateLists*placeLen
	bucketLen = 3 * 8 // follows when the topic has a rate
)

func (r *topicRecord) numbers() [13]*uint64 {
	return [...]*uint64{
		&r.counts[listDelayed], &r.counts[listReady],
		&r.counts[listReserved], &r.counts[listDead],
		&r.counts[listEnded],
		&r.added, &r.finished, &r.deleted, &r.timeouts, &r.died, &r.rank,
		&r.urgent, &r.pauses,
	}
}

func (r *topicRecord) instants() [3]*int64 {
	return [...]*int64{&r.emptySince, &r.pausedUntil, &r.pauseMS}
}

func (r *topicRecord) paused() bool { return r.pausedUntil != 0 }

// jobs counts all jobs. Retained ones count too: they keep the topic.
func (r *topicRecord) jobs() uint64 {
	var n uint64
	for _, c := range r.counts[:1+stateLists] {
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
	for _, p := range r.heads[1 : 1+stateLists] {
		b = p.append(b)
	}
	if r.bucket != nil {
		for _, v := range [bucketLen / 8]int64{r.bucket.tokens, r.bucket.at, r.bucket.since} {
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		}
	}
	if !r.expires() {
		return b
	}
	b = r.expiryIndexed.append(b)
	for _, n := range [...]uint64{r.expired, r.counts[listExpiring], r.counts[listDeadline]} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return r.heads[listDeadline].append(r.heads[listExpiring].append(b))
}

// expires reports whether the topic has or had jobs that expire.
func (r *topicRecord) expires() bool {
	return r.expiryIndexed != (place{}) || r.expired != 0 || r.counts[listDeadline] != 0
}

// expiryLen is the length of the expiry fields, which only records of topics that have or
// had jobs that expire end with.
const expiryLen = placeLen + 3*8 + 2*placeLen

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
	for i := range r.heads[1 : 1+stateLists] {
		r.heads[1+i] = decodePlace(rest)
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
	r.expiryIndexed, rest = decodePlace(rest), rest[placeLen:]
	for _, p := range [...]*uint64{&r.expired, &r.counts[listExpiring], &r.counts[listDeadline]} {
		*p = binary.BigEndian.Uint64(rest)
		rest = rest[8:]
	}
	if !r.expires() {
		return topicRecord{}, errors.New("topic record has expiry fields, but all are zero")
	}
	r.heads[listExpiring], r.heads[listDeadline] = decodePlace(rest), decodePlace(rest[placeLen:])
	return r, nil
}
