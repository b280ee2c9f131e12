package record

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"tarry/job"
	"tarry/job/jobpb"
)

// Earlier returns the earlier of two instants; 0: none.
func Earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// ExpiringPlace returns the place in the expiring list of a job whose ready place is p.
func (p Place) ExpiringPlace() Place { return Place{Instant: p.Instant, Seq: p.Seq} }

// The keyspaces. Their bytes are on disk: changing one breaks every data
// directory. Integers in keys are big-endian, so that byte order is their order.
const (
	SpaceAdmission = 'a' // a -> who may become a member: see cluster.go
	SpaceSettings  = 'c' // c topic name -> its settings
	SpaceDue       = 'd' // d, d period topic-number -> due counts: see due_counts.go
	SpaceForgotten = 'f' // f server-id -> nothing
	SpaceDead      = 'g' // g j|n|s ... -> dead jobs by reason: see dead_groups.go
	SpaceHeader    = 'h' // h j|n name ... -> the header index: see headers.go
	SpaceID        = 'i' // i producer-id -> seq
	SpaceSpec      = 'j' // j seq -> spec
	SpaceToken     = 'k' // k token-id -> token of a client; k -> see token.go
	SpaceConfigLog = 'l' // l number -> a change of the config: see config_log.go
	SpaceMeta      = 'm' // m name -> see meta.go
	SpaceNumber    = 'n' // n topic-number -> topic name
	SpaceNamespace = 'q' // q d|u name -> a namespace: its definition, what it holds
	SpaceSchedule  = 'r' // r d|s name -> a schedule: its definition, its state
	SpaceStatus    = 's' // s seq -> status
	SpaceTopic     = 't' // t name -> topic record
	SpaceUpload    = 'u' // u offset -> a part of an archive: see fsm/replace.go
	SpaceRemoved   = 'v' // v node-id -> when the node was removed: see cluster.go
	SpaceIndex     = 'x' // x topic-number state place -> priority of a delayed job, else nothing
)

// TableBoundaries separate, in the tables of the store, the four keyspaces with a record of each
// job, and that of an archive, from each other and from the small ones between them, some of which change in each entry
// (store.Options).
var TableBoundaries = [][]byte{
	{SpaceID}, {SpaceID + 1}, {SpaceSpec + 1}, {SpaceStatus}, {SpaceStatus + 1}, {SpaceUpload}, {SpaceUpload + 1}, {SpaceIndex},
}

// Place is where a job is in one list of its topic. A list is in the order of (priority,
// instant, seq), smallest first.
//
//	list      priority   instant
//	delayed   0          due
//	ready     the job's  due
//	reserved  0          end of the reservation
//	dead      0          rank: the count of jobs that died before it
//	ended     0          end of the retention
//	expiring  0          due: see fsm/expiry.go
type Place struct {
	Priority uint32
	// Carried is not part of the order: it is a delayed job's priority, so that the job
	// can move to the ready list without a read of its records.
	Carried uint32
	Instant int64
	Seq     uint64
}

func (p Place) Compare(q Place) int {
	if c := cmp.Compare(p.Priority, q.Priority); c != 0 {
		return c
	}
	if c := cmp.Compare(p.Instant, q.Instant); c != 0 {
		return c
	}
	return cmp.Compare(p.Seq, q.Seq)
}

func IsUrgent(list List, p Place) bool {
	return list == ListReady && p.Priority < job.UrgentBelow
}

// Next returns the smallest place after p. Seqs never reach the end of their range.
func (p Place) Next() Place {
	p.Seq++
	p.Carried = 0
	return p
}

func PlaceOf(p *jobpb.Place) Place {
	return Place{Priority: p.GetPriority(), Instant: p.GetInstant(), Seq: p.GetSeq()}
}

func (p Place) Proto() *jobpb.Place {
	return &jobpb.Place{Priority: p.Priority, Instant: p.Instant, Seq: p.Seq}
}

// ListID is one list of one topic.
type ListID struct {
	Topic uint32
	List  List
}

const (
	listPrefixLen = 1 + 4 + 1
	placeLen      = 4 + 8 + 8
	indexKeyLen   = listPrefixLen + placeLen
)

func (l ListID) appendPrefix(b []byte) []byte {
	b = append(b, SpaceIndex)
	b = binary.BigEndian.AppendUint32(b, l.Topic)
	return append(b, byte(l.List))
}

// appendEnd appends the smallest key after the list's own.
func (l ListID) appendEnd(b []byte) []byte {
	l.List++
	return l.appendPrefix(b)
}

func (l ListID) AppendKey(b []byte, p Place) []byte { return p.append(l.appendPrefix(b)) }

// append encodes the place, without carried. The order of the bytes is the order of places.
func (p Place) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, p.Priority)
	b = binary.BigEndian.AppendUint64(b, uint64(p.Instant))
	return binary.BigEndian.AppendUint64(b, p.Seq)
}

// decodePlace reads the first placeLen bytes.
func decodePlace(b []byte) Place {
	return Place{
		Priority: binary.BigEndian.Uint32(b),
		Instant:  int64(binary.BigEndian.Uint64(b[4:])),
		Seq:      binary.BigEndian.Uint64(b[12:]),
	}
}

// DecodeIndex reads one index entry.
func DecodeIndex(key, value []byte) (ListID, Place, error) {
	if len(key) != indexKeyLen || key[0] != SpaceIndex {
		return ListID{}, Place{}, fmt.Errorf("index key %x is malformed", key)
	}
	l := ListID{Topic: binary.BigEndian.Uint32(key[1:]), List: List(key[5])}
	p := decodePlace(key[listPrefixLen:])
	wantValue := 0
	if l.List == ListDelayed {
		wantValue = 4
	}
	if len(value) != wantValue {
		return ListID{}, Place{}, fmt.Errorf("index entry %x has a value of %d bytes, want %d", key, len(value), wantValue)
	}
	if wantValue == 4 {
		p.Carried = binary.BigEndian.Uint32(value)
	}
	return l, p, nil
}

func AppendSeqKey(b []byte, space byte, seq uint64) []byte {
	b = append(b, space)
	return binary.BigEndian.AppendUint64(b, seq)
}

func AppendNameKey(b []byte, space byte, name string) []byte {
	b = append(slices.Grow(b, 1+len(name)), space)
	return append(b, name...)
}

func AppendNumberKey(b []byte, topic uint32) []byte {
	b = append(b, SpaceNumber)
	return binary.BigEndian.AppendUint32(b, topic)
}

// SeqOfKey returns the seq of a spec's or status's key.
func SeqOfKey(key []byte) (uint64, error) {
	if len(key) != 9 {
		return 0, fmt.Errorf("key %x is malformed: it should be a letter and 8 bytes", key)
	}
	return binary.BigEndian.Uint64(key[1:]), nil
}
