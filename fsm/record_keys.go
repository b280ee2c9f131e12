package fsm

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"tarry/job"
	"tarry/job/jobpb"
)

// The keyspaces. Their bytes are on disk: changing one breaks every data
// directory. Integers in keys are big-endian, so that byte order is their order.
const (
	spaceAdmission = 'a' // a -> who may become a member: see record_admission.go
	spaceSettings  = 'c' // c topic name -> its settings
	spaceDue       = 'd' // d, d period topic-number -> due counts: see record_due_counts.go
	spaceForgotten = 'f' // f server-id -> nothing
	spaceDead      = 'g' // g j|n|s ... -> dead jobs by reason: see record_dead_groups.go
	spaceHeader    = 'h' // h j|n name ... -> the header index: see record_headers.go
	spaceID        = 'i' // i producer-id -> seq
	spaceSpec      = 'j' // j seq -> spec
	spaceToken     = 'k' // k token-id -> token of a client; k -> see record_token.go
	spaceMeta      = 'm' // m name -> see record_meta.go
	spaceNumber    = 'n' // n topic-number -> topic name
	spaceNamespace = 'q' // q d|u name -> a namespace: its definition, what it holds
	spaceSchedule  = 'r' // r d|s name -> a schedule: its definition, its state
	spaceStatus    = 's' // s seq -> status
	spaceTopic     = 't' // t name -> topic record
	spaceUpload    = 'u' // u offset -> a part of an archive: see op_replace.go
	spaceRemoved   = 'v' // v node-id -> when the node was removed: see record_removed.go
	spaceIndex     = 'x' // x topic-number state place -> priority of a delayed job, else nothing
)

// tableBoundaries separate, in the tables of the store, the four keyspaces with a record of each
// job, and that of an archive, from each other and from the small ones between them, some of which change in each entry
// (store.Options).
var tableBoundaries = [][]byte{{spaceID}, {spaceID + 1}, {spaceSpec + 1}, {spaceStatus}, {spaceStatus + 1}, {spaceUpload}, {spaceUpload + 1}, {spaceIndex}}

// place is where a job is in one list of its topic. A list is in the order of (priority,
// instant, seq), smallest first.
//
//	list      priority   instant
//	delayed   0          due
//	ready     the job's  due
//	reserved  0          end of the reservation
//	dead      0          rank: the count of jobs that died before it
//	ended     0          end of the retention
//	expiring  0          due: see rule_expiry.go
type place struct {
	priority uint32
	// carried is not part of the order: it is a delayed job's priority, so that the job
	// can move to the ready list without a read of its records.
	carried uint32
	instant int64
	seq     uint64
}

func (p place) compare(q place) int {
	if c := cmp.Compare(p.priority, q.priority); c != 0 {
		return c
	}
	if c := cmp.Compare(p.instant, q.instant); c != 0 {
		return c
	}
	return cmp.Compare(p.seq, q.seq)
}

func isUrgent(list listKind, p place) bool {
	return list == listReady && p.priority < job.UrgentBelow
}

// next returns the smallest place after p. Seqs never reach the end of their range.
func (p place) next() place {
	p.seq++
	p.carried = 0
	return p
}

func placeOf(p *jobpb.Place) place {
	return place{priority: p.GetPriority(), instant: p.GetInstant(), seq: p.GetSeq()}
}

func (p place) proto() *jobpb.Place {
	return &jobpb.Place{Priority: p.priority, Instant: p.instant, Seq: p.seq}
}

// listID is one list of one topic.
type listID struct {
	topic uint32
	list  listKind
}

const (
	listPrefixLen = 1 + 4 + 1
	placeLen      = 4 + 8 + 8
	indexKeyLen   = listPrefixLen + placeLen
)

func (l listID) appendPrefix(b []byte) []byte {
	b = append(b, spaceIndex)
	b = binary.BigEndian.AppendUint32(b, l.topic)
	return append(b, byte(l.list))
}

// appendEnd appends the smallest key after the list's own.
func (l listID) appendEnd(b []byte) []byte {
	l.list++
	return l.appendPrefix(b)
}

func (l listID) appendKey(b []byte, p place) []byte { return p.append(l.appendPrefix(b)) }

// append encodes the place, without carried. The order of the bytes is the order of places.
func (p place) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, p.priority)
	b = binary.BigEndian.AppendUint64(b, uint64(p.instant))
	return binary.BigEndian.AppendUint64(b, p.seq)
}

// decodePlace reads the first placeLen bytes.
func decodePlace(b []byte) place {
	return place{
		priority: binary.BigEndian.Uint32(b),
		instant:  int64(binary.BigEndian.Uint64(b[4:])),
		seq:      binary.BigEndian.Uint64(b[12:]),
	}
}

// decodeIndex reads one index entry.
func decodeIndex(key, value []byte) (listID, place, error) {
	if len(key) != indexKeyLen || key[0] != spaceIndex {
		return listID{}, place{}, fmt.Errorf("index key %x is malformed", key)
	}
	l := listID{topic: binary.BigEndian.Uint32(key[1:]), list: listKind(key[5])}
	p := decodePlace(key[listPrefixLen:])
	wantValue := 0
	if l.list == listDelayed {
		wantValue = 4
	}
	if len(value) != wantValue {
		return listID{}, place{}, fmt.Errorf("index entry %x has a value of %d bytes, want %d", key, len(value), wantValue)
	}
	if wantValue == 4 {
		p.carried = binary.BigEndian.Uint32(value)
	}
	return l, p, nil
}

func appendSeqKey(b []byte, space byte, seq uint64) []byte {
	b = append(b, space)
	return binary.BigEndian.AppendUint64(b, seq)
}

func appendNameKey(b []byte, space byte, name string) []byte {
	b = append(slices.Grow(b, 1+len(name)), space)
	return append(b, name...)
}

func appendNumberKey(b []byte, topic uint32) []byte {
	b = append(b, spaceNumber)
	return binary.BigEndian.AppendUint32(b, topic)
}

// seqOfKey returns the seq of a spec's or status's key.
func seqOfKey(key []byte) (uint64, error) {
	if len(key) != 9 {
		return 0, fmt.Errorf("key %x is malformed: it should be a letter and 8 bytes", key)
	}
	return binary.BigEndian.Uint64(key[1:]), nil
}
