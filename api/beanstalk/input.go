package beanstalk

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"tarry/api/httpx"
)

const (
	// maxLine is the longest command line in bytes, with its CRLF.
	maxLine = 224

	// smallBuffer is the buffer of an idle connection, in bytes; largeBuffer is
	// borrowed while a client sends faster than the small one is emptied.
	smallBuffer = 2 << 10
	largeBuffer = 16 << 10
)

var largeBuffers = sync.Pool{New: func() any { b := make([]byte, largeBuffer); return &b }}

// input reads lines and bodies from a connection. Its memory is bounded by
// largeBuffer: bodies that do not fit are read past it.
type input struct {
	conn  net.Conn
	buf   []byte // data lies in buf[from:to]
	from  int
	to    int
	small []byte
	large *[]byte // borrowed, or nil
	last  int     // size of the last read
	skips bool    // the line was too long: its rest is dropped
	err   error   // why nothing more can be read; returned after the data
}

func newInput(conn net.Conn) *input {
	in := &input{conn: conn, small: make([]byte, smallBuffer)}
	in.buf = in.small
	return in
}

// data returns what has been read and not consumed.
func (in *input) data() []byte { return in.buf[in.from:in.to] }

// consume drops n bytes of data.
func (in *input) consume(n int) {
	in.from += n
	if in.from == in.to {
		in.from, in.to = 0, 0
	}
}

// fill blocks until more data arrives. It is called when data is less than what is
// needed, and what is needed always fits the large buffer.
func (in *input) fill() error {
	if in.err != nil {
		return in.err
	}
	in.makeRoom()
	n, err := in.conn.Read(in.buf[in.to:])
	in.to += n
	in.last = n
	if err != nil {
		in.err = err
	}
	if n == 0 {
		return in.err
	}
	return nil
}

// makeRoom makes room after the data. It picks the buffer that suits the client: the
// large one while reads fill the small one.
func (in *input) makeRoom() {
	left := in.to - in.from
	switch {
	case in.large == nil && (in.last >= smallBuffer || left == smallBuffer):
		in.large = largeBuffers.Get().(*[]byte)
		in.move(*in.large)
	case in.large != nil && in.last <= smallBuffer/2 && left <= smallBuffer/2:
		in.move(in.small)
		in.giveBack()
	case in.from > 0:
		in.move(in.buf)
	}
}

func (in *input) move(to []byte) {
	n := copy(to, in.data())
	in.buf, in.from, in.to = to, 0, n
}

func (in *input) giveBack() {
	if in.large != nil {
		largeBuffers.Put(in.large)
		in.large = nil
	}
}

// close returns the buffers; it does not close the connection.
func (in *input) close() {
	in.buf, in.from, in.to = nil, 0, 0
	in.giveBack()
}

// lineState is what the data starts with.
type lineState int

const (
	partial lineState = iota // more data is needed
	whole                    // a line
	tooLong                  // the end of a line that was too long
)

// peek returns the next command line if there is one, and consumes nothing. tooLong means
// that a part of a line was dropped.
func (in *input) peek() ([]byte, lineState) {
	if in.skips {
		return nil, tooLong
	}
	return lineIn(in.data())
}

// lineIn looks for a command line at the start of data.
//
// As in beanstalkd, only the first CR of a possible line is checked: one that no LF
// follows hides all others.
func lineIn(data []byte) ([]byte, lineState) {
	window := data[:min(len(data), maxLine)]
	cr := bytes.IndexByte(window, '\r')
	switch {
	case cr >= 0 && cr+1 < len(window) && window[cr+1] == '\n':
		return window[:cr], whole
	case len(window) < maxLine:
		return nil, partial
	}
	return nil, tooLong
}

// line looks for a command line at the start of the data, without its CRLF, and
// consumes it. It drops lines that are too long. It does not block; the line is valid
// until the next fill.
func (in *input) line() ([]byte, lineState) {
	for {
		line, state := lineIn(in.data())
		switch {
		case state == partial:
			return nil, partial
		case state == tooLong:
			in.skips = true
			in.consume(maxLine)
		case in.skips:
			in.consume(len(line) + 2)
			in.skips = false
			return nil, tooLong
		default:
			in.consume(len(line) + 2)
			return line, whole
		}
	}
}

// errNoRoom is the error of body when room returns false.
var errNoRoom = errors.New("no room for a body")

// body reads n bytes and the two after them; ok reports whether those are CRLF. It
// calls room before it allocates, with larger numbers as more has arrived. With an error,
// which is errNoRoom when room returns false, it returns what it has consumed.
func (in *input) body(n int, room func(bytes int) bool) (body []byte, ok bool, err error) {
	for size := n + 2; len(body) < size; {
		have, left := len(body), size-len(body)
		more := min(left, max(len(in.data()), int(httpx.NextRoom(int64(have), int64(size)))))
		if !room(more) {
			return body, false, errNoRoom
		}
		body = append(make([]byte, 0, have+more), body...)[:have+more]
		copied := copy(body[have:], in.data())
		in.consume(copied)
		if copied == more {
			continue
		}
		read := 0
		if in.err == nil {
			read, in.err = io.ReadFull(in.conn, body[have+copied:])
		}
		if in.err != nil {
			return body[:have+copied+read], false, in.err
		}
	}
	return body[:n:n], body[n] == '\r' && body[n+1] == '\n', nil
}

// skip drops n bytes.
func (in *input) skip(n int64) error {
	for {
		have := min(n, int64(len(in.data())))
		in.consume(int(have))
		if n -= have; n == 0 {
			return nil
		}
		if err := in.fill(); err != nil {
			return err
		}
	}
}

// longAgo is a read deadline that ends a read in progress.
var longAgo = time.Unix(1, 0)

// watchAfter is how long a reserve waits before the connection is watched. Most
// reserves end sooner.
const watchAfter = 5 * time.Millisecond

// watch reads ahead while a reserve waits, and calls gone when the client has
// closed the connection or its sending half. It cannot detect that once the buffer
// is full. The caller must not use in until it has called stop.
func (in *input) watch(gone func()) (stop func()) {
	done := make(chan struct{})
	t := time.AfterFunc(watchAfter, func() {
		defer close(done)
		for {
			switch err := in.fill(); {
			case errors.Is(err, os.ErrDeadlineExceeded):
				in.err = nil
				return
			case err != nil || in.err != nil && !errors.Is(in.err, os.ErrDeadlineExceeded):
				gone()
				return
			case in.from == 0 && in.to == largeBuffer:
				return
			}
		}
	})
	return func() {
		if t.Stop() {
			return
		}
		in.conn.SetReadDeadline(longAgo)
		<-done
		in.conn.SetReadDeadline(time.Time{})
		if errors.Is(in.err, os.ErrDeadlineExceeded) {
			in.err = nil
		}
	}
}
