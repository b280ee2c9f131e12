package record

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"tarry/job/jobpb"
)

// PendingAdvance is an AdvanceAt that waits for its instant.
type PendingAdvance struct {
	At   int64
	Term uint64 // of its entry
	Op   []byte // the jobpb.AdvanceAt, encoded
}

// AppendTaken encodes when and of which term an advance was that has taken effect.
func (p PendingAdvance) AppendTaken(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(append(b, FormatVersion), uint64(p.At))
	return binary.BigEndian.AppendUint64(b, p.Term)
}

func DecodeTaken(b []byte) (p PendingAdvance, err error) {
	if err := checkVersion("record of an advance that took effect", b, FormatVersion); err != nil {
		return PendingAdvance{}, err
	}
	if len(b) != 17 {
		return PendingAdvance{}, fmt.Errorf("record of an advance that took effect, of %d bytes: %w", len(b), ErrShort)
	}
	return PendingAdvance{At: int64(binary.BigEndian.Uint64(b[1:])), Term: binary.BigEndian.Uint64(b[9:])}, nil
}

func AppendPending(b []byte, pending []PendingAdvance) []byte {
	b = append(b, FormatVersion)
	for _, p := range pending {
		b = binary.BigEndian.AppendUint64(b, uint64(p.At))
		b = binary.BigEndian.AppendUint64(b, p.Term)
		b = binary.AppendUvarint(b, uint64(len(p.Op)))
		b = append(b, p.Op...)
	}
	return b
}

func decodePending(b []byte) (pending []PendingAdvance, err error) {
	if err := checkVersion("record of pending advances", b, FormatVersion); err != nil {
		return nil, err
	}
	b = slices.Clone(b[1:])
	for len(b) > 0 {
		if len(b) < 17 {
			return nil, fmt.Errorf("record of pending advances: %w", ErrShort)
		}
		n, w := binary.Uvarint(b[16:])
		if w <= 0 || n > uint64(len(b)-16-w) {
			return nil, fmt.Errorf("record of pending advances: %w", ErrShort)
		}
		end := 16 + w + int(n)
		p := PendingAdvance{At: int64(binary.BigEndian.Uint64(b)), Term: binary.BigEndian.Uint64(b[8:]), Op: b[16+w : end]}
		if err := new(jobpb.AdvanceAt).UnmarshalVTUnsafe(p.Op); err != nil {
			return nil, fmt.Errorf("record of pending advances: %w", err)
		}
		pending, b = append(pending, p), b[end:]
	}
	return pending, nil
}

// HeaderWalk is the walk over the existing jobs after the index_headers of topics with jobs
// changed. In the order of seqs it adds and removes entries of the header index. Another
// change restarts it, so there is one at a time. Its zero value: none.
type HeaderWalk struct {
	Limit uint64 // jobs from this seq on were added since
	Next  uint64 // jobs before this seq are done
	Names []WalkedHeader
}

// WalkedHeader is a header that some settings began or ceased to name.
type WalkedHeader struct {
	Name string
	// Added: some topic has begun to index it, so a search for it may miss jobs.
	Added bool
}

func (w *HeaderWalk) UnderWay() bool { return w.Limit != 0 }

// Ahead reports whether the walk has yet to process a job.
func (w *HeaderWalk) Ahead(seq uint64) bool { return seq >= w.Next && seq < w.Limit }

// Unsure reports whether it is unknown if a job has its entry for a header.
func (w *HeaderWalk) Unsure(seq uint64, name string) bool {
	return w.Ahead(seq) && slices.ContainsFunc(w.Names, func(h WalkedHeader) bool { return h.Name == name })
}

// Misses reports whether a search for a header may miss jobs.
func (w *HeaderWalk) Misses(name string) bool {
	return slices.Contains(w.Names, WalkedHeader{name, true})
}

// Note adds a header to those of the walk.
func (w *HeaderWalk) Note(name string, added bool) {
	for i := range w.Names {
		if h := &w.Names[i]; h.Name == name {
			h.Added = h.Added || added
			return
		}
	}
	w.Names = append(w.Names, WalkedHeader{name, added})
}

func (w *HeaderWalk) Append(b []byte) []byte {
	b = append(b, FormatVersion)
	b = binary.BigEndian.AppendUint64(b, w.Limit)
	b = binary.BigEndian.AppendUint64(b, w.Next)
	for _, h := range w.Names {
		added := byte(0)
		if h.Added {
			added = 1
		}
		b = append(b, added, byte(len(h.Name)))
		b = append(b, h.Name...)
	}
	return b
}

func decodeHeaderWalk(b []byte) (w HeaderWalk, err error) {
	if err := checkVersion("record of the walk over headers", b, FormatVersion); err != nil {
		return HeaderWalk{}, err
	}
	if len(b) < 17 {
		return HeaderWalk{}, fmt.Errorf("record of the walk over headers has %d bytes: %w", len(b), ErrShort)
	}
	w.Limit, w.Next = binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:])
	for b = b[17:]; len(b) > 0; {
		if len(b) < 2 || len(b) < 2+int(b[1]) || b[0] > 1 {
			return HeaderWalk{}, fmt.Errorf("name in the walk over headers: %w", ErrShort)
		}
		n := 2 + int(b[1])
		w.Names = append(w.Names, WalkedHeader{string(b[2:n]), b[0] == 1})
		b = b[n:]
	}
	return w, nil
}

// Upload is an archive of which parts are stored. Its zero value: there is none.
type Upload struct {
	ID, Size uint64
	Sum      uint32 // CRC-32C of the parts
}

const uploadLen = 1 + 8 + 8 + 4

var UploadTable = crc32.MakeTable(crc32.Castagnoli)

func (u *Upload) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(append(b, FormatVersion), u.ID)
	b = binary.BigEndian.AppendUint64(b, u.Size)
	return binary.BigEndian.AppendUint32(b, u.Sum)
}

func DecodeUpload(b []byte) (Upload, error) {
	if err := checkVersion("record of an archive", b, FormatVersion); err != nil {
		return Upload{}, err
	}
	if len(b) != uploadLen {
		return Upload{}, fmt.Errorf("record of an archive of %d bytes: %w", len(b), ErrShort)
	}
	return Upload{ID: binary.BigEndian.Uint64(b[1:]), Size: binary.BigEndian.Uint64(b[9:]), Sum: binary.BigEndian.Uint32(b[17:])}, nil
}

func (u *Upload) Add(part []byte) {
	u.Size += uint64(len(part))
	u.Sum = crc32.Update(u.Sum, UploadTable, part)
}

// ClockReset is how the clock was set back. Its zero value: never.
type ClockReset struct {
	Epoch uint64 // how often
	// While jobs remain to be changed, else 0:
	Ahead int64  // the clock before
	Back  int64  // how far it was set back
	Limit uint64 // jobs from this seq on were added since
	Next  uint64 // jobs before this seq are done
}

const clockResetLen = 1 + 5*8

func (c *ClockReset) Numbers() [5]uint64 {
	return [...]uint64{c.Epoch, uint64(c.Ahead), uint64(c.Back), c.Limit, c.Next}
}

func (c *ClockReset) Append(b []byte) []byte {
	b = append(b, FormatVersion)
	for _, v := range c.Numbers() {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

func decodeClockReset(b []byte) (c ClockReset, err error) {
	if err := checkVersion("clock record", b, FormatVersion); err != nil {
		return ClockReset{}, err
	}
	if len(b) != clockResetLen {
		return ClockReset{}, fmt.Errorf("clock record has %d bytes, want %d", len(b), clockResetLen)
	}
	n := func(i int) uint64 { return binary.BigEndian.Uint64(b[1+8*i:]) }
	return ClockReset{Epoch: n(0), Ahead: int64(n(1)), Back: int64(n(2)), Limit: n(3), Next: n(4)}, nil
}

// UnderWay reports whether jobs remain to be changed.
func (c *ClockReset) UnderWay() bool { return c.Ahead != 0 }

// Replaced is how a backup last replaced the state of a running cluster. Its zero value: never.
type Replaced struct {
	Count uint32 // how often, in this cluster and those that its state comes from
	Index uint64 // of the log; of the cluster in which it was
}

const replacedLen = 1 + 4 + 8

func (p Replaced) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(append(b, FormatVersion), p.Count)
	return binary.BigEndian.AppendUint64(b, p.Index)
}

func DecodeReplaced(b []byte) (p Replaced, err error) {
	if err := checkVersion("record of a replacement", b, FormatVersion); err != nil {
		return Replaced{}, err
	}
	if len(b) != replacedLen {
		return Replaced{}, fmt.Errorf("record of a replacement of %d bytes: %w", len(b), ErrShort)
	}
	return Replaced{Count: binary.BigEndian.Uint32(b[1:]), Index: binary.BigEndian.Uint64(b[5:])}, nil
}
