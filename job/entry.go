package job

import (
	"encoding/binary"
	"fmt"
	"slices"

	"tarry/job/jobpb"
)

// EntryVersion is the first byte of every Raft log entry that Tarry writes. A
// node that meets a version it does not know must stop: skipping an entry would
// make its state differ from the others' for ever.
const EntryVersion = 1

// Protocol Buffers tags of jobpb.Entry, used to put an entry together from
// operations that are encoded already. TestEntryPutTogetherByHandIsTheSchemasEntry holds them to the schema.
const (
	tagNow   = 1 << 3   // field 1, a varint
	tagEpoch = 3 << 3   // field 3, a varint
	tagOp    = 2<<3 | 2 // field 2, length-delimited

	// Of jobpb.Op, length-delimited: field 1, and the two bytes of fields 17 and 23.
	tagAdd      = 1<<3 | 2
	tagCompose  = (17<<3|2)&0x7f | 0x80
	tagCompose2 = (17<<3 | 2) >> 7
	tagFire     = (23<<3|2)&0x7f | 0x80
	tagFire2    = (23<<3 | 2) >> 7
)

// AppendEntryHeader starts an entry in buf: its version and the leader's clock.
func AppendEntryHeader(buf []byte, nowMS int64) []byte {
	buf = append(buf, EntryVersion, tagNow)
	return binary.AppendUvarint(buf, uint64(nowMS))
}

// AppendClockEpoch adds to an entry's header the epoch of the clock that told its
// time. Without it, it is 0.
func AppendClockEpoch(buf []byte, epoch uint64) []byte {
	if epoch == 0 {
		return buf
	}
	buf = append(buf, tagEpoch)
	return binary.AppendUvarint(buf, epoch)
}

// AppendOp adds one operation to the entry, or to a run of operations, in buf.
func AppendOp(buf []byte, op *jobpb.Op) ([]byte, error) {
	n := op.SizeVT()
	buf = append(buf, tagOp)
	buf = binary.AppendUvarint(buf, uint64(n))
	start := len(buf)
	buf = slices.Grow(buf, n)[:start+n]
	if _, err := op.MarshalToSizedBufferVT(buf[start:]); err != nil {
		return nil, fmt.Errorf("encode operation: %w", err)
	}
	return buf, nil
}

// OpSize is how many bytes AppendOp adds at most.
func OpSize(op *jobpb.Op) int { return 1 + binary.MaxVarintLen32 + op.SizeVT() }

// CheckOps proves that a run of operations from a peer may enter the log of a cluster
// with this version, and counts them: every one decodes, is none that the leader alone
// proposes, and neither it nor anything in it is unknown here or newer than the
// version. One that is unknown would end the process of each node that reads the
// entry. Of what is unknown or newer the error wraps a NewerError.
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
		if LeaderOnly(op) {
			return 0, fmt.Errorf("run of operations: %T is proposed by the leader alone", op.Kind)
		}
	}
}

// LeaderOnly reports whether an operation is never caused by a client: the leader
// makes it by itself, and takes it from nobody else.
func LeaderOnly(op *jobpb.Op) bool {
	switch k := op.Kind.(type) {
	case *jobpb.Op_Advance, *jobpb.Op_Reserve, *jobpb.Op_Mark, *jobpb.Op_SetCluster, *jobpb.Op_ForgetMember,
		*jobpb.Op_RaiseVersion, *jobpb.Op_Migrate, *jobpb.Op_ResetClock:
		return true
	case *jobpb.Op_FireSchedule:
		return !k.FireSchedule.GetNow() // a run out of turn is a client's
	}
	return false
}

// CheckVersion is CheckOps for a run that AppendOp made: it only looks for what is
// unknown here or newer than the cluster's version.
func CheckVersion(run []byte, version uint32) error {
	for {
		op, rest, ok := cutOp(run)
		if !ok {
			return nil // the end
		}
		if err := opSchema.check(op, version); err != nil {
			return err
		}
		run = rest
	}
}

// HasAdd reports whether a run that AppendOp made holds an add, alone, composed
// or scheduled. It does not decode: the first bytes of an operation name its kind.
func HasAdd(run []byte) bool {
	for {
		op, rest, ok := cutOp(run)
		if !ok {
			return false // the end, or not a run; whoever takes it in says so
		}
		if len(op) > 1 && (op[0] == tagAdd || op[0] == tagCompose && op[1] == tagCompose2 || op[0] == tagFire && op[1] == tagFire2) {
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
	e := &jobpb.Entry{NowMs: now, ClockEpoch: r.epoch}
	for {
		op, err := r.Next()
		if err != nil {
			return nil, err
		}
		if op == nil {
			return e, nil
		}
		e.Ops = append(e.Ops, op)
		r = &OpReader{rest: r.rest, read: r.read, version: r.version} // op keeps the other
	}
}
