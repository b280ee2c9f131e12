//lint:file-ignore SA1019 Raft still sends and reads the deprecated fields, and its messages must arrive whole.

package raftwire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/hashicorp/raft"
)

// accept gives each connection a goroutine, until Close.
func (t *Transport) accept() {
	var pause time.Duration
	for {
		c, err := t.cfg.Layer.Accept()
		if err == nil {
			pause = 0
			if tracked := t.track(c); tracked != nil {
				t.running.Go(func() { t.serve(tracked) })
			}
			continue
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		select {
		case <-t.done:
			return
		default:
			t.cfg.Logger.Error("Raft cannot accept a connection", "error", err, "again_in", pause)
		}
		select {
		case <-time.After(pause):
		case <-t.done:
			return
		}
	}
}

// serve replies to the requests of a connection until it ends.
func (t *Transport) serve(c *conn) {
	defer c.Close()
	in := &stallReader{conn: c, limit: t.cfg.Stall}
	s := &serverConn{t: t, conn: c, in: in, r: newFrameReader(in), responses: make(chan raft.RPCResponse, 1)}
	for {
		err := s.one()
		if err == nil {
			continue
		}
		select {
		case <-t.done:
		default:
			t.report(c, err)
		}
		return
	}
}

// report logs why a connection from another node ended, unless it was closed. Nodes that are
// killed leave broken connections behind; that is no error of this node.
func (t *Transport) report(c net.Conn, err error) {
	var damaged *damagedError
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed):
	case errors.As(err, &damaged):
		t.cfg.Logger.Error("another node sent a message to Raft that does not decode", "from", c.RemoteAddr(), "error", err)
	default:
		t.cfg.Logger.Warn("a connection from another node broke", "from", c.RemoteAddr(), "error", err)
	}
}

type serverConn struct {
	t         *Transport
	conn      net.Conn
	in        *stallReader
	r         *frameReader
	responses chan raft.RPCResponse // of the request that is handled; exactly one arrives
	buf       []byte
}

// one handles one request. The error io.EOF means that the connection ended as it may.
func (s *serverConn) one() error {
	if err := s.in.idle(); err != nil {
		return err
	}
	if _, err := s.r.Peek(1); err != nil {
		return err
	}
	s.in.midway = true
	k, message, err := s.r.next(maxMessage)
	if err != nil {
		return err
	}
	request, err := s.r.decoder(message).request(k)
	if err != nil {
		return &damagedError{fmt.Errorf("a message of kind %d: %w", k, err)}
	}
	rpc := raft.RPC{Command: request, RespChan: s.responses}
	if snapshot, ok := request.(*raft.InstallSnapshotRequest); ok {
		return s.receive(rpc, snapshot.Size)
	}
	if s.accepts(rpc) {
		s.t.pass(rpc)
	}
	return s.respond()
}

func (s *serverConn) accepts(rpc raft.RPC) bool {
	return s.t.cfg.Accept == nil || s.t.cfg.Accept(s.conn.RemoteAddr(), rpc)
}

// respond waits for the response to a request, and sends it.
func (s *serverConn) respond() error {
	select {
	case r := <-s.responses:
		return s.reply(r)
	case <-s.t.done:
		return raft.ErrTransportShutdown
	}
}

// receive handles a request that a snapshot of so many bytes follows. Raft's main goroutine reads
// these, and does nothing else meanwhile. So it gets the request only once the first bytes are
// here, and then waits for the next ones no longer than a stall may last. The connection is not
// used again.
func (s *serverConn) receive(rpc raft.RPC, size int64) error {
	state := &stateReader{r: s.r, size: size, left: size, limit: s.in.limit}
	rpc.Reader = state
	if s.accepts(rpc) {
		if !s.t.beginReceive() {
			return fmt.Errorf("refused to receive a state: the states of %d senders are announced already", maxReceives)
		}
		defer s.t.endReceive()
		if err := state.begin(); err != nil {
			return err
		}
		s.t.pass(rpc)
	}
	err := s.respond()
	if state.err != nil {
		return state.err
	}
	if err == nil {
		return io.EOF // the sender closes too
	}
	return err
}

// pass gives a request to Raft's main goroutine, or to the handler of heartbeats.
func (t *Transport) pass(rpc raft.RPC) {
	if f := t.heartbeat.Load(); f != nil && isHeartbeat(rpc.Command) {
		(*f)(rpc)
		return
	}
	t.Deliver(rpc)
}

// isHeartbeat reports whether a request is a leader's heartbeat: it has a term and a sender
// and nothing else.
func isHeartbeat(request any) bool {
	a, ok := request.(*raft.AppendEntriesRequest)
	return ok && a.Term != 0 && len(a.Addr)+len(a.Leader) > 0 &&
		a.PrevLogEntry == 0 && a.PrevLogTerm == 0 && len(a.Entries) == 0 && a.LeaderCommitIndex == 0
}

func (s *serverConn) reply(r raft.RPCResponse) error {
	var err error
	if r.Error == nil {
		s.buf, err = appendReply(appendHead(s.buf[:0], kindReply), r.Response)
	} else {
		text := r.Error.Error()
		s.buf = append(appendHead(s.buf[:0], kindError), text[:min(len(text), maxReply)]...)
	}
	if err == nil {
		err = endFrame(s.buf, maxReply)
	}
	if err == nil {
		_, err = s.conn.Write(s.buf)
	}
	if err != nil {
		return fmt.Errorf("send a reply: %w", err)
	}
	return nil
}
