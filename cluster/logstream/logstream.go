package logstream

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"
)

// A stream is a head and frames. Integers are big-endian.
//
//	head:  "TARRYLOG" version(4)
//	frame: size(4) CRC-32C(4) kind(1) index(8) term(8) or time(8) data
//
// The size is that of what follows the checksum, which covers both.
const (
	magic = "TARRYLOG"
	// FormatVersion is the version of the format. A Reader knows only its own.
	FormatVersion = 1

	headLen  = len(magic) + 4
	frameLen = 1 + 8 + 8

	// MaxData bounds the data of an entry.
	MaxData = 32 << 20
)

// Kind is what a frame is.
type Kind byte

const (
	// Entry is an entry of the log. Without data it is one of Raft's own, which changes
	// nothing.
	Entry Kind = 1
	// Seen says how far the sender is: its Index is the last entry that it has applied. One
	// comes before each run of entries, and while there are none. It has the time of the
	// sender's clock in place of the term.
	Seen Kind = 2
)

// Frame is one message of a stream.
type Frame struct {
	Kind        Kind
	Index, Term uint64
	Data        []byte
}

// NewSeen returns a frame that says that the sender has applied the entry with an index.
func NewSeen(index uint64, at time.Time) Frame {
	return Frame{Kind: Seen, Index: index, Term: uint64(at.UnixMilli())}
}

// At returns the time of a frame of the kind Seen.
func (f *Frame) At() time.Time { return time.UnixMilli(int64(f.Term)) }

// ErrDamaged is wrapped by the errors of a stream that is not what a Writer has written.
var ErrDamaged = errors.New("the stream of the log is damaged")

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// Writer writes a stream. Its frames are buffered until Flush.
type Writer struct{ to *bufio.Writer }

// NewWriter begins a stream.
func NewWriter(to io.Writer) (*Writer, error) {
	w := &Writer{bufio.NewWriterSize(to, 64<<10)}
	_, err := w.to.Write(binary.BigEndian.AppendUint32([]byte(magic), FormatVersion))
	return w, err
}

// Write adds a frame.
func (w *Writer) Write(f Frame) error {
	if len(f.Data) > MaxData {
		return fmt.Errorf("entry %d has %d bytes; a stream takes %d", f.Index, len(f.Data), MaxData)
	}
	var head [8 + frameLen]byte
	binary.BigEndian.PutUint32(head[:], uint32(frameLen+len(f.Data)))
	head[8] = byte(f.Kind)
	binary.BigEndian.PutUint64(head[9:], f.Index)
	binary.BigEndian.PutUint64(head[17:], f.Term)
	binary.BigEndian.PutUint32(head[4:], checksum(head[:4], head[8:], f.Data))
	if _, err := w.to.Write(head[:]); err != nil {
		return err
	}
	_, err := w.to.Write(f.Data)
	return err
}

// Flush writes what is buffered.
func (w *Writer) Flush() error { return w.to.Flush() }

func checksum(parts ...[]byte) (sum uint32) {
	for _, p := range parts {
		sum = crc32.Update(sum, crcTable, p)
	}
	return sum
}

// Reader reads a stream.
type Reader struct {
	from *bufio.Reader
	head bool // it was read
}

// NewReader returns a Reader. It reads nothing before Next.
func NewReader(from io.Reader) *Reader { return &Reader{from: bufio.NewReaderSize(from, 64<<10)} }

// Next returns the next frame, whose data the caller may keep. It blocks until there is one. The
// error is io.EOF at the end of the stream, between two frames.
func (r *Reader) Next() (Frame, error) {
	if !r.head {
		if err := r.readHead(); err != nil {
			return Frame{}, err
		}
		r.head = true
	}
	var head [8 + frameLen]byte
	if _, err := io.ReadFull(r.from, head[:]); err != nil {
		return Frame{}, err // io.EOF if there is nothing at all
	}
	size := binary.BigEndian.Uint32(head[:])
	if size < uint32(frameLen) || size > frameLen+MaxData {
		return Frame{}, fmt.Errorf("%w: a frame has %d bytes", ErrDamaged, size)
	}
	f := Frame{Kind: Kind(head[8]), Index: binary.BigEndian.Uint64(head[9:]), Term: binary.BigEndian.Uint64(head[17:])}
	var err error
	if f.Data, err = readData(r.from, int(size)-frameLen); err != nil {
		return Frame{}, err
	}
	if binary.BigEndian.Uint32(head[4:]) != checksum(head[:4], head[8:], f.Data) {
		return Frame{}, fmt.Errorf("%w: a frame does not match its checksum", ErrDamaged)
	}
	if f.Kind != Entry && f.Kind != Seen {
		return Frame{}, fmt.Errorf("%w: a frame has the unknown kind %d", ErrDamaged, f.Kind)
	}
	return f, nil
}

func (r *Reader) readHead() error {
	var head [headLen]byte
	if _, err := io.ReadFull(r.from, head[:]); err != nil {
		return err
	}
	if string(head[:len(magic)]) != magic {
		return fmt.Errorf("%w: it does not begin as one", ErrDamaged)
	}
	if v := binary.BigEndian.Uint32(head[len(magic):]); v != FormatVersion {
		return fmt.Errorf("the stream of the log has format %d, and this release reads format %d", v, FormatVersion)
	}
	return nil
}

// readData reads n bytes. It takes memory as they arrive, because n is not trusted yet.
func readData(from io.Reader, n int) ([]byte, error) {
	const step = 1 << 20
	data := make([]byte, 0, min(n, step))
	for len(data) < n {
		more := min(n-len(data), step)
		data = append(data, make([]byte, more)...)
		if _, err := io.ReadFull(from, data[len(data)-more:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return data, nil
}
