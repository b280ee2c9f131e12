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
	tagNow = 1 << 3   // field 1, a varint
	tagOp  = 2<<3 | 2 // field 2, length-delimited

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

// CheckOps proves that a run of operations from a peer may enter the log, and
// counts them: every one decodes and is known here. One that is not would end
// the process of each node that reads the entry.
func CheckOps(run []byte) (int, error) {
	count := 0
	for len(run) > 0 {
		n, w := binary.Uvarint(run[1:])
		if run[0] != tagOp || w <= 0 || n > uint64(len(run)-1-w) {
			return 0, fmt.Errorf("operation %d of the run is cut short or not framed as an operation", count)
		}
		end := 1 + w + int(n)
		var op jobpb.Op
		if err := op.UnmarshalVTUnsafe(run[1+w : end]); err != nil {
			return 0, fmt.Errorf("operation %d of the run does not decode: %w", count, err)
		}
		if op.Kind == nil {
			return 0, fmt.Errorf("operation %d of the run is unknown here: it comes from a newer release", count)
		}
		run = run[end:]
		count++
	}
	return count, nil
}

// HasAdd reports whether a run that AppendOp made holds an add, alone, composed
// or scheduled. It does not decode: the first bytes of an operation name its kind.
func HasAdd(run []byte) bool {
	for len(run) > 1 {
		n, w := binary.Uvarint(run[1:])
		if w <= 0 || n > uint64(len(run)-1-w) {
			return false // not a run; whoever takes it in says so
		}
		if op := run[1+w : 1+w+int(n)]; n > 1 && (op[0] == tagAdd || op[0] == tagCompose && op[1] == tagCompose2 || op[0] == tagFire && op[1] == tagFire2) {
			return true
		}
		run = run[1+w+int(n):]
	}
	return false
}

// DecodeEntry reads an entry. Bodies and strings of the result alias data, so
// data must not change while the entry is in use.
func DecodeEntry(data []byte) (*jobpb.Entry, error) {
	if len(data) == 0 {
		return nil, fmt.Errorf("log entry is empty")
	}
	if data[0] != EntryVersion {
		return nil, fmt.Errorf("log entry has version %d, this node knows only %d: it was written by a newer release; upgrade this node", data[0], EntryVersion)
	}
	e := new(jobpb.Entry)
	if err := e.UnmarshalVTUnsafe(data[1:]); err != nil {
		return nil, fmt.Errorf("log entry of version %d does not decode: %w", EntryVersion, err)
	}
	for i, op := range e.Ops {
		if op.Kind == nil {
			return nil, fmt.Errorf("operation %d of the log entry is unknown here: it was written by a newer release; upgrade this node", i)
		}
	}
	return e, nil
}
