package raftwire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// maxReceives bounds the snapshots that are announced to this node and have not ended. One leader
// sends one; others may come from leaders that were deposed.
const maxReceives = 4

// stallReader reads a connection. Between two requests it waits without a limit; in the middle of
// one it fails when nothing arrives for too long. What is slow but goes on is not interrupted.
type stallReader struct {
	conn   net.Conn
	limit  time.Duration
	midway bool // a request has begun
	bound  bool // the connection has a deadline
}

func (r *stallReader) Read(b []byte) (int, error) {
	if r.midway {
		r.bound = true
		if err := r.conn.SetReadDeadline(time.Now().Add(r.limit)); err != nil {
			return 0, err
		}
	}
	n, err := r.conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = &stallError{r.limit, err}
	}
	return n, err
}

// idle is called before a request is awaited.
func (r *stallReader) idle() error {
	r.midway = false
	if !r.bound {
		return nil
	}
	r.bound = false
	return r.conn.SetReadDeadline(time.Time{})
}

// stallError is the error of a sender that stopped in the middle of a message. Its connection is
// open: the process hangs, or its machine is gone.
type stallError struct {
	limit time.Duration
	err   error
}

func (e *stallError) Error() string {
	return fmt.Sprintf("the sender has sent nothing for %v", e.limit)
}
func (e *stallError) Unwrap() error { return e.err }

// stateReader reads a snapshot. Its error stays: after one Raft reads on, to discard the rest.
type stateReader struct {
	r          *frameReader
	size, left int64
	limit      time.Duration
	err        error
}

// begin waits for the first bytes.
func (s *stateReader) begin() error {
	_, err := s.r.Peek(int(min(s.size, bufferBytes)))
	return s.failed(err)
}

func (s *stateReader) Read(b []byte) (int, error) {
	switch {
	case s.err != nil:
		return 0, s.err
	case s.left == 0:
		return 0, io.EOF
	}
	n, err := s.r.Read(b[:min(int64(len(b)), s.left)])
	s.left -= int64(n)
	return n, s.failed(err)
}

func (s *stateReader) failed(err error) error {
	if err != nil {
		s.err = fmt.Errorf("receive a state, after %d of %d bytes: %w", s.size-s.left, s.size, unexpected(err))
	}
	return s.err
}

// beginReceive reports whether one more snapshot may be received. If so, endReceive must be called.
func (t *Transport) beginReceive() bool {
	if t.receives.Add(1) <= maxReceives {
		return true
	}
	t.receives.Add(-1)
	return false
}

// Receiving reports whether another node has announced a snapshot that has not ended yet.
func (t *Transport) Receiving() bool { return t.receives.Load() > 0 }

func (t *Transport) endReceive() { t.receives.Add(-1) }
