package raftwire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// The format of a frame: length(4, big-endian) of what follows | kind(1) | message.
const (
	headBytes = 4 + 1
	// maxMessage bounds a request: an append carries at most
	// groupcommit.MaxEntryBytes of entries, or a single entry of at most that.
	maxMessage = 64 << 20
	// maxReply bounds a reply, and the text of an error.
	maxReply = 64 << 10
	// bufferBytes is the size of the buffer of a connection's reader, and the largest
	// buffer that is kept for writing.
	bufferBytes = 64 << 10
	// grown is the step in which the buffer of a large message grows as its bytes
	// arrive, so that a length alone does not allocate it.
	grown = 1 << 20
)

type kind byte

const (
	kindAppend     kind = 1
	kindVote       kind = 2
	kindPreVote    kind = 3
	kindSnapshot   kind = 4
	kindTimeoutNow kind = 5
	kindReply      kind = 6
	kindError      kind = 7 // the message is a text
)

// appendHead begins a frame. Its length is set by endFrame.
func appendHead(b []byte, k kind) []byte { return append(b, 0, 0, 0, 0, byte(k)) }

// endFrame sets the length of the only frame in b. limit is that of its message.
func endFrame(b []byte, limit int) error {
	if n := len(b) - headBytes; n > limit {
		return fmt.Errorf("a message of %d bytes; it may have %d at most", n, limit)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return nil
}

// frameReader reads the frames of a connection.
type frameReader struct {
	*bufio.Reader
	from senders
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{Reader: bufio.NewReaderSize(r, bufferBytes)}
}

// next reads a frame whose message has at most limit bytes. The message is valid until the
// next read. The error is io.EOF if the connection ended between two frames.
func (f *frameReader) next(limit int) (kind, []byte, error) {
	head, err := f.Peek(headBytes)
	if err != nil {
		if len(head) > 0 {
			err = unexpected(err)
		}
		return 0, nil, err
	}
	length, k := binary.BigEndian.Uint32(head), kind(head[4])
	if length < 1 || uint64(length) > uint64(limit)+1 {
		return 0, nil, &damagedError{fmt.Errorf("a message of %d bytes; it may have 0 to %d", int64(length)-1, limit)}
	}
	f.Discard(headBytes) // cannot fail: they were read
	message, err := f.message(int(length) - 1)
	return k, message, err
}

func (f *frameReader) message(n int) ([]byte, error) {
	if n <= bufferBytes {
		b, err := f.Peek(n)
		if err != nil {
			return nil, unexpected(err)
		}
		f.Discard(n) // cannot fail: they were read
		return b, nil
	}
	var b []byte
	for len(b) < n {
		step := min(n-len(b), max(grown, len(b))) // at most twice what has arrived
		b = slices.Grow(b, step)
		part := b[len(b) : len(b)+step]
		if _, err := io.ReadFull(f, part); err != nil {
			return nil, unexpected(err)
		}
		b = b[:len(b)+step]
	}
	return b, nil
}

func (f *frameReader) decoder(message []byte) *decoder { return &decoder{b: message, from: &f.from} }

// damagedError is the error of bytes that no node of this version sends.
type damagedError struct{ err error }

func (e *damagedError) Error() string { return e.err.Error() }
func (e *damagedError) Unwrap() error { return e.err }

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
