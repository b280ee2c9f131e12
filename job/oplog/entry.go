package oplog

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"tarry/job/jobpb"
)

// EntryVersion is the first byte of every Raft log entry that Tarry writes. A node must
// stop at an unknown version: if it skipped an entry, its state would differ from then on.
const EntryVersion = 1

// AppendEntryHeader starts an entry in buf: its version and the leader's clock.
func AppendEntryHeader(buf []byte, nowMS int64) []byte {
	buf = append(buf, EntryVersion, tagNow)
	return binary.AppendUvarint(buf, uint64(nowMS))
}

// AppendEntryTime is AppendEntryHeader and AppendClockEpoch for an instant, in a cluster with this
// version. The time of an entry is rounded down: nothing is due by it that is not due yet. What
// counts from it must be rounded up.
func AppendEntryTime(buf []byte, now time.Time, epoch uint64, version uint32) []byte {
	buf = AppendClockEpoch(AppendEntryHeader(buf, now.UnixMilli()), epoch)
	if version >= roundedDownSince && now.Nanosecond()%int(time.Millisecond) != 0 {
		buf = append(buf, tagRoundedDown, 1)
	}
	return buf
}

// roundedDownSince is the cluster version from which on entries say that their time is rounded down.
const roundedDownSince = 2

// AppendClockEpoch adds the epoch of the leader's clock to an entry's header. The default
// is 0.
func AppendClockEpoch(buf []byte, epoch uint64) []byte {
	if epoch == 0 {
		return buf
	}
	buf = append(buf, tagEpoch)
	return binary.AppendUvarint(buf, epoch)
}

// Heard says when the leader of a data group asked the config group, by the clock of the entry, and at
// which position that was then. At 0 it says nothing.
type Heard struct {
	AskedMS       int64
	Epoch, Number uint64
}

// AppendHeard adds h to an entry's header, as its last part.
func AppendHeard(buf []byte, h Heard) []byte {
	if h.AskedMS == 0 {
		return buf
	}
	for i, v := range [...]uint64{uint64(h.AskedMS), h.Epoch, h.Number} {
		buf = binary.AppendUvarint(append(buf, tagsHeard[i]), v)
	}
	return buf
}

// readHeard reads what AppendHeard has added.
func (r *OpReader) readHeard() error {
	var values [len(tagsHeard)]uint64
	for i := range values {
		n := 0
		if len(r.rest) > 0 && r.rest[0] == tagsHeard[i] {
			values[i], n = binary.Uvarint(r.rest[1:])
		}
		if n <= 0 {
			return fmt.Errorf("log entry of version %d does not decode: when its leader asked the config group is cut short", EntryVersion)
		}
		r.rest = r.rest[1+n:]
	}
	r.heard = Heard{AskedMS: int64(values[0]), Epoch: values[1], Number: values[2]}
	return nil
}

// AppendOp adds one operation to the entry, or to a run of operations, in buf.
func AppendOp(buf []byte, op *jobpb.Op) ([]byte, error) {
	return AppendOpOf(buf, op, op.Principal)
}

// AppendOpOf is AppendOp with a principal in place of that of op.
func AppendOpOf(buf []byte, op *jobpb.Op, principal string) ([]byte, error) {
	kind, ok := op.Kind.(interface {
		SizeVT() int
		MarshalToSizedBufferVT([]byte) (int, error)
	})
	if !ok {
		return nil, fmt.Errorf("encode operation: %T is none", op.Kind)
	}
	n := kind.SizeVT()
	more := PrincipalSize(principal)
	buf = append(buf, tagOp)
	buf = binary.AppendUvarint(buf, uint64(n+more))
	start := len(buf)
	buf = slices.Grow(buf, n+more)[:start+n]
	if _, err := kind.MarshalToSizedBufferVT(buf[start:]); err != nil {
		return nil, fmt.Errorf("encode operation: %w", err)
	}
	if principal != "" { // behind the kind, with which an encoded operation begins
		buf = protowire.AppendString(protowire.AppendTag(buf, principalNumber, protowire.BytesType), principal)
	}
	return buf, nil
}

// OpSize returns how many bytes AppendOp adds at most.
func OpSize(op *jobpb.Op) int { return 1 + binary.MaxVarintLen32 + op.SizeVT() }

// PrincipalSize returns how many bytes more AppendOpOf adds at most.
func PrincipalSize(principal string) int {
	if principal == "" {
		return 0
	}
	return protowire.SizeTag(principalNumber) + protowire.SizeBytes(len(principal))
}

// CheckOps checks that a run of operations from a peer may enter the log of a cluster with
// this version, and returns their number: each decodes, is not for the leader alone, and
// has nothing that is unknown here or newer than the version. An unknown operation would
// stop every node that reads the entry. The error wraps a NewerError if something is
// unknown or newer.
func CheckOps(run []byte, version uint32) (int, error) {
	r := OpReader{rest: run, version: version}
	for {
		op, err := r.Next()
		if err != nil {
			return 0, fmt.Errorf("run of operations: %w", err)
		}
		if op == nil {
			return r.read, nil
		}
		if !isOne(r.frame) {
			return 0, fmt.Errorf("run of operations: operation %d is more than one", r.read-1)
		}
		if err := checkPeerOp(op); err != nil {
			return 0, fmt.Errorf("run of operations: operation %d: %w", r.read-1, err)
		}
		if rowOf(r.number).forLeader(op) {
			return 0, fmt.Errorf("run of operations: %T is proposed by the leader alone", op.Kind)
		}
	}
}

// Kinds is what the operations of a run include.
type Kinds struct {
	Adds       bool // one that may make jobs
	LeaderOnly bool // one that no client causes
}

// CheckVersion is CheckOps for a run that AppendOp made: it only checks that nothing is
// unknown here or newer than the cluster's version.
func CheckVersion(run []byte, version uint32) (Kinds, error) {
	var kinds Kinds
	for {
		op, rest, ok := cutOp(run)
		if !ok {
			return kinds, nil // the end
		}
		if err := opSchema.check(op, version); err != nil {
			return kinds, err
		}
		row := rowOf(numberOf(op))
		kinds.Adds = kinds.Adds || row.adds
		if row.leaderOnly && !kinds.LeaderOnly {
			decoded := new(jobpb.Op)
			if row.byClient != nil {
				if err := decoded.UnmarshalVTUnsafe(op); err != nil {
					return kinds, err
				}
			}
			kinds.LeaderOnly = row.forLeader(decoded)
		}
		run = rest
	}
}

// HasAdd reports whether a run that AppendOp made has an operation that may make jobs. It
// does not decode: an operation begins with its kind.
func HasAdd(run []byte) bool {
	for {
		op, rest, ok := cutOp(run)
		if !ok {
			return false // the end, or not a run, which its reader refuses
		}
		if rowOf(numberOf(op)).adds {
			return true
		}
		run = rest
	}
}

// DecodeEntry reads a whole entry. Bodies and strings of the result alias data,
// so data must not change while the entry is in use.
func DecodeEntry(data []byte) (*jobpb.Entry, error) {
	r := new(OpReader)
	now, err := r.ReadEntry(data)
	if err != nil {
		return nil, err
	}
	e := &jobpb.Entry{
		NowMs: now, ClockEpoch: r.epoch, RoundedDown: r.roundedDown,
		HeardMs: r.heard.AskedMS, HeardEpoch: r.heard.Epoch, HeardNumber: r.heard.Number,
	}
	for {
		op, err := r.Next()
		if err != nil {
			return nil, err
		}
		if op == nil {
			return e, nil
		}
		e.Ops = append(e.Ops, op)
		r = &OpReader{rest: r.rest, read: r.read, version: r.version} // op aliases the other
	}
}
