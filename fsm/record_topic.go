package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// topicVersion is the first byte of a topic record.
const topicVersion = 3

// topicRecord is the stored part of a topic.
type topicRecord struct {
	number     uint32
	counts     [listCount]uint64 // jobs by list
	bytes      uint64            // of the bodies of all jobs
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
	// pushURLs counts the jobs with a push_url, except retained ones.
	pushURLs uint64
}

const (
	topicLen  = 1 + 4 + 17*8 + stateLists*placeLen
	bucketLen = 3 * 8 // follows when the topic has a rate
	// pushURLsLen ends records of topics with pushURLs.
	pushURLsLen = 8
)

func (r *topicRecord) numbers() [14]*uint64 {
	return [...]*uint64{
		&r.counts[listDelayed], &r.counts[listReady],
		&r.counts[listReserved], &r.counts[listDead],
		&r.counts[listEnded],
		&r.added, &r.finished, &r.deleted, &r.timeouts, &r.died, &r.rank,
		&r.urgent, &r.pauses, &r.bytes,
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
	if r.expires() {
		b = r.expiryIndexed.append(b)
		for _, n := range [...]uint64{r.expired, r.counts[listExpiring], r.counts[listDeadline]} {
			b = binary.BigEndian.AppendUint64(b, n)
		}
		b = r.heads[listDeadline].append(r.heads[listExpiring].append(b))
	}
	if r.pushURLs != 0 {
		b = binary.BigEndian.AppendUint64(b, r.pushURLs)
	}
	return b
}

// expires reports whether the topic has or had jobs that expire.
func (r *topicRecord) expires() bool {
	return r.expiryIndexed != (place{}) || r.expired != 0 || r.counts[listDeadline] != 0
}

// expiryLen is the length of the expiry fields, which only records of topics that have or
// had jobs that expire end with.
const expiryLen = placeLen + 3*8 + 2*placeLen

// topicParts reports which parts the end of a topic's record has. Its length tells, because
// each part is longer than those after it together.
func topicParts(n int) (expiry, rate, pushURLs bool, err error) {
	left := n
	has := func(part int) bool {
		if left < part {
			return false
		}
		left -= part
		return true
	}
	expiry, rate, pushURLs = has(expiryLen), has(bucketLen), has(pushURLsLen)
	if left != 0 {
		err = fmt.Errorf("topic record has %d bytes, want %d, with expiry %d more, with a rate %d more, with URLs of jobs %d more", topicLen+n, topicLen, expiryLen, bucketLen, pushURLsLen)
	}
	return expiry, rate, pushURLs, err
}

func decodeTopic(b []byte) (r topicRecord, err error) {
	if err := checkVersion("topic record", b, topicVersion); err != nil {
		return topicRecord{}, err
	}
	if len(b) < topicLen {
		return topicRecord{}, fmt.Errorf("topic record of %d bytes: %w", len(b), errShort)
	}
	expiry, rate, pushURLs, err := topicParts(len(b) - topicLen)
	if err != nil {
		return topicRecord{}, err
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
	if rate {
		r.bucket = &bucket{}
		for _, p := range [...]*int64{&r.bucket.tokens, &r.bucket.at, &r.bucket.since} {
			*p = int64(binary.BigEndian.Uint64(rest))
			rest = rest[8:]
		}
	}
	if expiry {
		r.expiryIndexed, rest = decodePlace(rest), rest[placeLen:]
		for _, p := range [...]*uint64{&r.expired, &r.counts[listExpiring], &r.counts[listDeadline]} {
			*p = binary.BigEndian.Uint64(rest)
			rest = rest[8:]
		}
		if !r.expires() {
			return topicRecord{}, errors.New("topic record has expiry fields, but all are zero")
		}
		r.heads[listExpiring], r.heads[listDeadline] = decodePlace(rest), decodePlace(rest[placeLen:])
		rest = rest[2*placeLen:]
	}
	if pushURLs {
		if r.pushURLs = binary.BigEndian.Uint64(rest); r.pushURLs == 0 {
			return topicRecord{}, errors.New("topic record has a number of URLs of jobs, which is zero")
		}
	}
	return r, nil
}
