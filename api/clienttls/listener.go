package clienttls

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"tarry/internal/replay"
)

// Mode says which clients a port serves.
type Mode int

const (
	Off      Mode = iota // plain clients
	Optional             // both
	Require              // clients with TLS
)

var modes = [...]string{Off: "off", Optional: "optional", Require: "require"}

func (m Mode) String() string { return modes[m] }

// MarshalText implements encoding.TextMarshaler.
func (m Mode) MarshalText() ([]byte, error) { return []byte(modes[m]), nil }

// UnmarshalText accepts the names of the modes.
func (m *Mode) UnmarshalText(text []byte) error {
	for i, name := range modes {
		if name == string(text) {
			*m = Mode(i)
			return nil
		}
	}
	return fmt.Errorf("it must be off, optional or require, got %.40q", text)
}

// ErrPlain is returned by Read for a plain client of a port that wants TLS.
var ErrPlain = errors.New("a client without TLS on a port that requires it")

const (
	// handshakeRecord is the first byte that a TLS client sends.
	handshakeRecord = 0x16
	// hintTime bounds what a refused client may delay, and maxDrop what is read of it, so
	// that it gets the hint.
	hintTime = time.Second
	// handshakeTime bounds how long a client may take until the handshake is over, and on a
	// port that requires TLS until it sends something.
	handshakeTime = 10 * time.Second
	maxDrop       = 16 << 10
)

// Options of a Listener.
type Options struct {
	Mode   Mode
	Config func() *tls.Config // for the next connection
	Hint   string             // the reply to a plain client that is refused
	// Refused is called once for a connection whose handshake fails, but not for one that ends or
	// falls silent. It must not block. nil: nothing is reported.
	Refused func(from net.Addr, err error)
}

// Listen returns l if the mode is Off, and else a listener whose connections speak TLS.
func Listen(l net.Listener, o Options) net.Listener {
	if o.Mode == Off {
		return l
	}
	return &listener{l, o}
}

type listener struct {
	net.Listener
	o Options
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	ours := &conn{Conn: c, o: &l.o}
	if l.o.Mode == Require {
		ours.hurry()
	}
	return ours, nil
}

// conn is a connection that finds out with its first Read what it speaks. One goroutine
// reads at a time; others may write and close.
type conn struct {
	net.Conn // as accepted
	o        *Options

	spoken atomic.Pointer[spoken] // nil before the first byte
	failed error                  // of the first Read

	limit *time.Timer // closes Conn if the handshake takes too long; nil: there is no limit
	ready bool        // the handshake is over
	told  bool        // Refused was called
}

// spoken is what a connection speaks.
type spoken struct {
	net.Conn
	// state is that of TLS when the handshake is over; it does not change any more. nil: it is not
	// over, or there is none. It is kept because each request is asked for it.
	state *tls.ConnectionState
}

// hurry sets the time limit of the handshake. It is called before the second goroutine knows
// the connection, or by the reader.
func (c *conn) hurry() {
	if c.limit == nil {
		c.limit = time.AfterFunc(handshakeTime, func() { c.Conn.Close() })
	}
}

// handshake ends the handshake of a client that speaks TLS, before the first byte is read.
func (c *conn) handshake(s *spoken) error {
	if t, ok := s.Conn.(*tls.Conn); ok {
		if err := t.Handshake(); err != nil {
			c.refused(err)
			return err
		}
		state := t.ConnectionState()
		c.spoken.Store(&spoken{t, &state})
	}
	if c.ready = true; c.limit != nil {
		c.limit.Stop()
	}
	return nil
}

// refused tells of a handshake that failed.
func (c *conn) refused(err error) {
	if c.told || c.o.Refused == nil {
		return
	}
	var network *net.OpError // also a reset, or the time limit's close; an alert of the client is one
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &network) && network.Op != "remote error" {
		return
	}
	c.told = true
	c.o.Refused(c.RemoteAddr(), err)
}

// StateOf returns the state of TLS of a connection, or nil if it has none or its handshake is
// not over. It must not be changed.
func StateOf(c net.Conn) *tls.ConnectionState {
	for c != nil {
		if ours, ok := c.(*conn); ok {
			if s := ours.spoken.Load(); s != nil {
				return s.state
			}
			return nil
		}
		below, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = below.NetConn()
	}
	return nil
}

func (c *conn) Read(b []byte) (int, error) {
	s := c.spoken.Load()
	if s == nil {
		if c.failed != nil {
			return 0, c.failed
		}
		var err error
		if s, err = c.begin(); err != nil {
			return 0, err
		}
	}
	if !c.ready {
		if err := c.handshake(s); err != nil {
			return 0, err
		}
	}
	return s.Read(b)
}

// NetConn returns the connection below.
func (c *conn) NetConn() net.Conn { return c.Conn }

// begin reads the first byte. After a deadline it may be called again.
func (c *conn) begin() (*spoken, error) {
	var first [1]byte
	if _, err := io.ReadFull(c.Conn, first[:]); err != nil {
		return nil, err
	}
	var s net.Conn = replay.New(c.Conn, first[:])
	switch {
	case first[0] == handshakeRecord:
		c.hurry()
		s = tls.Server(s, c.o.Config())
	case c.o.Mode == Require:
		c.failed = ErrPlain
		c.refuse()
		return nil, c.failed
	}
	speech := &spoken{Conn: s}
	c.spoken.Store(speech)
	return speech, nil
}

// refuse tells a plain client what the port wants. Closing at once with unread bytes
// would reset the connection, and the hint would be lost.
func (c *conn) refuse() {
	c.Conn.SetDeadline(time.Now().Add(hintTime))
	if _, err := io.WriteString(c.Conn, c.o.Hint); err != nil {
		return
	}
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, c.Conn, maxDrop) // until the client closes, or hintTime ends
	}
	c.Conn.Close()
}

// Write writes plain text if the client has sent nothing: only a refusal comes so early.
func (c *conn) Write(b []byte) (int, error) {
	if s := c.spoken.Load(); s != nil {
		return s.Write(b)
	}
	return c.Conn.Write(b)
}

// CloseWrite ends the sending half.
func (c *conn) CloseWrite() error {
	if s := c.spoken.Load(); s != nil {
		if t, ok := s.Conn.(*tls.Conn); ok {
			return t.CloseWrite()
		}
	}
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

func (c *conn) Close() error {
	if s := c.spoken.Load(); s != nil {
		return s.Close()
	}
	return c.Conn.Close()
}
