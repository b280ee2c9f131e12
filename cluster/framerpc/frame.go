package framerpc

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// The format of a frame. Integers are big-endian.
//
//	length(4) of what follows | exchange(8) | kind(1) | payload
//
// The payload of a call or a stream begins with the name of the method: length(1) name.
const (
	headerBytes = 4 + 8 + 1
	// maxFrame bounds a frame. A batch is at most one request over
	// groupcommit.MaxBatchBytes; a reply to a reserve has up to job.MaxReserveBytes of
	// bodies for each of its waiters in an entry.
	maxFrame = 256 << 20
	// grown is the step in which the buffer of a large frame grows as its bytes arrive,
	// so that a length alone does not allocate it.
	grown = 1 << 20
)

type kind byte

// The caller begins an exchange with kindCall or kindStream and may end it with
// kindCancel. The other end replies to a call with kindReply or kindEnd. On a stream both
// send messages until the caller cancels it or the other end sends kindEnd.
const (
	kindCall    kind = 1 // method and message
	kindStream  kind = 2 // method
	kindMessage kind = 3 // a message of a stream
	kindCancel  kind = 4 // empty
	kindReply   kind = 5 // message
	kindEnd     kind = 6 // google.rpc.Status; empty: the stream ended without an error
	lastKind         = kindEnd
)

// begins reports whether a frame begins an exchange, and so names a method.
func (k kind) begins() bool { return k == kindCall || k == kindStream }

// head is a frame without its payload.
type head struct {
	exchange uint64
	kind     kind
	method   string // of a call or a stream
	payload  int    // bytes that follow
}

// frameReader reads the frames of a connection.
type frameReader struct {
	r       *bufio.Reader
	methods map[string]string // names that were read before, so that they are not copied again
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, 64<<10), methods: map[string]string{}}
}

// head reads the next frame's head and method. It returns io.EOF if the connection ended
// between two frames.
func (f *frameReader) head() (h head, err error) {
	b, err := f.r.Peek(headerBytes)
	if err != nil {
		if len(b) > 0 && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return h, err
	}
	length := binary.BigEndian.Uint32(b)
	h.exchange, h.kind = binary.BigEndian.Uint64(b[4:]), kind(b[12])
	if length < headerBytes-4 || length > maxFrame {
		return h, fmt.Errorf("a frame of %d bytes; it may have %d to %d", length, headerBytes-4, maxFrame)
	}
	if h.kind == 0 || h.kind > lastKind {
		return h, fmt.Errorf("a frame of unknown kind %d: upgrade the older node", h.kind)
	}
	f.r.Discard(headerBytes) // cannot fail: they were read
	h.payload = int(length) - (headerBytes - 4)
	if h.kind.begins() {
		h.method, err = f.method(&h.payload)
	}
	return h, err
}

func (f *frameReader) method(left *int) (string, error) {
	n, err := f.r.ReadByte()
	if err != nil {
		return "", unexpected(err)
	}
	if *left -= 1 + int(n); *left < 0 {
		return "", fmt.Errorf("a method's name of %d bytes exceeds its frame", n)
	}
	name, err := f.r.Peek(int(n))
	if err != nil {
		return "", unexpected(err)
	}
	known, ok := f.methods[string(name)]
	if !ok {
		known = string(name)
		if len(f.methods) < 64 {
			f.methods[known] = known
		}
	}
	f.r.Discard(int(n)) // cannot fail: they were read
	return known, nil
}

// payload reads n bytes. They belong to the caller.
func (f *frameReader) payload(n int) ([]byte, error) {
	if n <= grown {
		b := make([]byte, n)
		_, err := io.ReadFull(f.r, b)
		return b, unexpected(err)
	}
	var b []byte
	for len(b) < n {
		step := min(n-len(b), max(grown, len(b))) // at most twice what has arrived
		b = slices.Grow(b, step)
		part := b[len(b) : len(b)+step]
		if _, err := io.ReadFull(f.r, part); err != nil {
			return nil, unexpected(err)
		}
		b = b[:len(b)+step]
	}
	return b, nil
}

// skip discards n bytes.
func (f *frameReader) skip(n int) error {
	_, err := f.r.Discard(n)
	return unexpected(err)
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// appendFrame appends a frame without its message, with room for size bytes of it, and
// returns that room too.
func appendFrame(b []byte, exchange uint64, k kind, method string, size int) (all, message []byte) {
	length := headerBytes - 4 + size
	if k.begins() {
		length += 1 + len(method)
	}
	b = slices.Grow(b, 4+length)
	b = binary.BigEndian.AppendUint32(b, uint32(length))
	b = binary.BigEndian.AppendUint64(b, exchange)
	b = append(b, byte(k))
	if k.begins() {
		b = append(b, byte(len(method)))
		b = append(b, method...)
	}
	return b[:len(b)+size], b[len(b) : len(b)+size]
}
