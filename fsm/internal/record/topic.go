package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Everything is a place behind all others.
var Everything = Place{Priority: math.MaxUint32, Instant: math.MaxInt64, Seq: math.MaxUint64}

// IsExpiryIndexed reports whether a place of the ready list is in the expiring list too.
func (r *Topic) IsExpiryIndexed(p Place) bool { return p.Compare(r.ExpiryIndexed) <= 0 }

// TopicVersion is the first byte of a topic record.
const TopicVersion = 3

// Topic is the stored part of a topic.
type Topic struct {
	Number     uint32
	Counts     [ListCount]uint64 // jobs by list
	Bytes      uint64            // of the bodies of all jobs
	Added      uint64
	Finished   uint64
	Deleted    uint64
	Timeouts   uint64
	Died       uint64
	Rank       uint64 // of the next job to die
	Urgent     uint64 // ready jobs with a priority below job.UrgentBelow
	Pauses     uint64
	EmptySince int64 // FSM clock; meaningful while the topic has no jobs
	// PausedUntil is when Advance ends the pause, PauseMS its whole length. Both are 0 if
	// and only if the topic is not paused.
	PausedUntil int64
	PauseMS     int64
	// Heads are the first places of the lists; zero: the list is empty. With them no
	// search for a head passes the tombstones at the beginning of a list.
	Heads  [ListCount]Place
	Bucket *Bucket // nil without a rate
	// ExpiryIndexed is the place up to which ready jobs are also in ListExpiring; see
	// fsm/expiry.go.
	ExpiryIndexed Place
	Expired       uint64 // jobs that were not reserved in time
	// PushURLs counts the jobs with a push_url, except retained ones.
	PushURLs uint64
}

const (
	TopicLen  = 1 + 4 + 17*8 + StateLists*placeLen
	bucketLen = 3 * 8 // follows when the topic has a rate
	// pushURLsLen ends records of topics with pushURLs.
	pushURLsLen = 8
)

func (r *Topic) numbers() [14]*uint64 {
	return [...]*uint64{
		&r.Counts[ListDelayed], &r.Counts[ListReady],
		&r.Counts[ListReserved], &r.Counts[ListDead],
		&r.Counts[ListEnded],
		&r.Added, &r.Finished, &r.Deleted, &r.Timeouts, &r.Died, &r.Rank,
		&r.Urgent, &r.Pauses, &r.Bytes,
	}
}

func (r *Topic) instants() [3]*int64 {
	return [...]*int64{&r.EmptySince, &r.PausedUntil, &r.PauseMS}
}

func (r *Topic) Paused() bool { return r.PausedUntil != 0 }

// Jobs counts all jobs. Retained ones count too: they keep the topic.
func (r *Topic) Jobs() uint64 {
	var n uint64
	for _, c := range r.Counts[:1+StateLists] {
		n += c
	}
	return n
}

func (r *Topic) Append(b []byte) []byte {
	b = append(b, TopicVersion)
	b = binary.BigEndian.AppendUint32(b, r.Number)
	for _, p := range r.numbers() {
		b = binary.BigEndian.AppendUint64(b, *p)
	}
	for _, p := range r.instants() {
		b = binary.BigEndian.AppendUint64(b, uint64(*p))
	}
	for _, p := range r.Heads[1 : 1+StateLists] {
		b = p.append(b)
	}
	if r.Bucket != nil {
		for _, v := range [bucketLen / 8]int64{r.Bucket.Tokens, r.Bucket.At, r.Bucket.Since} {
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		}
	}
	if r.expires() {
		b = r.ExpiryIndexed.append(b)
		for _, n := range [...]uint64{r.Expired, r.Counts[ListExpiring], r.Counts[ListDeadline]} {
			b = binary.BigEndian.AppendUint64(b, n)
		}
		b = r.Heads[ListDeadline].append(r.Heads[ListExpiring].append(b))
	}
	if r.PushURLs != 0 {
		b = binary.BigEndian.AppendUint64(b, r.PushURLs)
	}
	return b
}

// expires reports whether the topic has or had jobs that expire.
func (r *Topic) expires() bool {
	return r.ExpiryIndexed != (Place{}) || r.Expired != 0 || r.Counts[ListDeadline] != 0
}

// ExpiryLen is the length of the expiry fields, which only records of topics that have or
// had jobs that expire end with.
const ExpiryLen = placeLen + 3*8 + 2*placeLen

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
	expiry, rate, pushURLs = has(ExpiryLen), has(bucketLen), has(pushURLsLen)
	if left != 0 {
		err = fmt.Errorf(
			"topic record has %d bytes, want %d, with expiry %d more, with a rate %d more, with URLs of jobs %d more",
			TopicLen+n, TopicLen, ExpiryLen, bucketLen, pushURLsLen)
	}
	return expiry, rate, pushURLs, err
}

func DecodeTopic(b []byte) (r Topic, err error) {
	if err := checkVersion("topic record", b, TopicVersion); err != nil {
		return Topic{}, err
	}
	if len(b) < TopicLen {
		return Topic{}, fmt.Errorf("topic record of %d bytes: %w", len(b), ErrShort)
	}
	expiry, rate, pushURLs, err := topicParts(len(b) - TopicLen)
	if err != nil {
		return Topic{}, err
	}
	r.Number = binary.BigEndian.Uint32(b[1:])
	rest := b[5:]
	for _, p := range r.numbers() {
		*p = binary.BigEndian.Uint64(rest)
		rest = rest[8:]
	}
	for _, p := range r.instants() {
		*p = int64(binary.BigEndian.Uint64(rest))
		rest = rest[8:]
	}
	for i := range r.Heads[1 : 1+StateLists] {
		r.Heads[1+i] = decodePlace(rest)
		rest = rest[placeLen:]
	}
	if rate {
		r.Bucket = &Bucket{}
		for _, p := range [...]*int64{&r.Bucket.Tokens, &r.Bucket.At, &r.Bucket.Since} {
			*p = int64(binary.BigEndian.Uint64(rest))
			rest = rest[8:]
		}
	}
	if expiry {
		r.ExpiryIndexed, rest = decodePlace(rest), rest[placeLen:]
		for _, p := range [...]*uint64{&r.Expired, &r.Counts[ListExpiring], &r.Counts[ListDeadline]} {
			*p = binary.BigEndian.Uint64(rest)
			rest = rest[8:]
		}
		if !r.expires() {
			return Topic{}, errors.New("topic record has expiry fields, but all are zero")
		}
		r.Heads[ListExpiring], r.Heads[ListDeadline] = decodePlace(rest), decodePlace(rest[placeLen:])
		rest = rest[2*placeLen:]
	}
	if pushURLs {
		if r.PushURLs = binary.BigEndian.Uint64(rest); r.PushURLs == 0 {
			return Topic{}, errors.New("topic record has a number of URLs of jobs, which is zero")
		}
	}
	return r, nil
}
