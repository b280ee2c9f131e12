package raftwire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/hashicorp/raft"
)

// clientConn is a connection that one goroutine at a time sends requests on.
type clientConn struct {
	*conn
	target raft.ServerAddress
	r      *frameReader
	buf    []byte
}

// open returns an idle connection, or dials.
func (t *Transport) open(target raft.ServerAddress) (*clientConn, error) {
	t.mu.Lock()
	if list := t.idle[target]; len(list) > 0 {
		c := list[len(list)-1]
		t.idle[target] = list[:len(list)-1]
		t.mu.Unlock()
		return c, nil
	}
	t.mu.Unlock()
	dialed, err := t.cfg.Layer.Dial(target, t.cfg.Timeout)
	if err != nil {
		return nil, err
	}
	c := t.track(dialed)
	if c == nil {
		return nil, raft.ErrTransportShutdown
	}
	return &clientConn{conn: c, target: target, r: newFrameReader(c)}, nil
}

// keep returns a connection to the pool, unless there are bytes that nobody has asked for.
func (t *Transport) keep(c *clientConn) {
	t.mu.Lock()
	list := t.idle[c.target]
	kept := !t.over && len(list) < t.cfg.Pool && c.r.Buffered() == 0
	if kept {
		t.idle[c.target] = append(list, c)
	}
	t.mu.Unlock()
	if !kept {
		c.Close()
	}
}

// send writes a request.
func (c *clientConn) send(k kind, request any) error {
	c.buf = appendRequest(appendHead(c.buf[:0], k), request)
	err := endFrame(c.buf, maxMessage)
	if err == nil {
		_, err = c.Write(c.buf)
	}
	if cap(c.buf) > bufferBytes {
		c.buf = nil
	}
	return err
}

// remoteError is the error of a server that has replied with it. The connection is usable.
type remoteError string

func (e remoteError) Error() string { return string(e) }

// receive reads the next reply.
func (c *clientConn) receive(reply any) error {
	k, message, err := c.r.next(maxReply)
	if err != nil {
		return fmt.Errorf("read the reply: %w", err)
	}
	switch k {
	case kindReply:
		if err := c.r.decoder(message).reply(reply); err != nil {
			return fmt.Errorf("a damaged reply: %w", err)
		}
		return nil
	case kindError:
		return remoteError(message)
	}
	return fmt.Errorf("a message of kind %d in place of a reply", k)
}

// call sends a request and reads its reply.
func (t *Transport) call(target raft.ServerAddress, k kind, request, reply any) error {
	c, err := t.open(target)
	if err != nil {
		return err
	}
	if err = c.SetDeadline(time.Now().Add(t.cfg.Timeout)); err == nil {
		if err = c.send(k, request); err == nil {
			err = c.receive(reply)
		}
	}
	if _, replied := errors.AsType[remoteError](err); err == nil || replied {
		t.keep(c)
	} else {
		c.Close()
	}
	return err
}

// AppendEntries implements raft.Transport.
func (t *Transport) AppendEntries(_ raft.ServerID, target raft.ServerAddress, request *raft.AppendEntriesRequest, reply *raft.AppendEntriesResponse) error {
	return t.call(target, kindAppend, request, reply)
}

// RequestVote implements raft.Transport.
func (t *Transport) RequestVote(_ raft.ServerID, target raft.ServerAddress, request *raft.RequestVoteRequest, reply *raft.RequestVoteResponse) error {
	return t.call(target, kindVote, request, reply)
}

// RequestPreVote implements raft.WithPreVote.
func (t *Transport) RequestPreVote(_ raft.ServerID, target raft.ServerAddress, request *raft.RequestPreVoteRequest, reply *raft.RequestPreVoteResponse) error {
	return t.call(target, kindPreVote, request, reply)
}

// TimeoutNow implements raft.Transport.
func (t *Transport) TimeoutNow(_ raft.ServerID, target raft.ServerAddress, request *raft.TimeoutNowRequest, reply *raft.TimeoutNowResponse) error {
	return t.call(target, kindTimeoutNow, request, reply)
}

// bytesATimeout is how many bytes of a snapshot have one more Timeout.
const bytesATimeout = 256 << 10

// InstallSnapshot implements raft.Transport. It closes the connection, because after an
// error nobody knows how much of the snapshot was sent.
func (t *Transport) InstallSnapshot(_ raft.ServerID, target raft.ServerAddress, request *raft.InstallSnapshotRequest, reply *raft.InstallSnapshotResponse, data io.Reader) error {
	c, err := t.open(target)
	if err != nil {
		return err
	}
	defer c.Close()
	timeout := t.cfg.Timeout * time.Duration(max(1, request.Size/bytesATimeout))
	if err := c.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	if err := c.send(kindSnapshot, request); err != nil {
		return err
	}
	if _, err := io.CopyBuffer(progressWriter{c, time.Now().Add(timeout)}, data, make([]byte, bytesATimeout)); err != nil {
		return err
	}
	return c.receive(reply)
}

// takeTimeout is how long a follower may take nothing of a snapshot. It may have to write for a
// while before it can receive more; a follower that hangs takes nothing for good.
const takeTimeout = 30 * time.Second

// progressWriter is a connection whose writes end at over, and before if the other end takes
// nothing.
type progressWriter struct {
	c    net.Conn
	over time.Time
}

func (w progressWriter) Write(b []byte) (int, error) {
	end := time.Now().Add(takeTimeout)
	if w.over.Before(end) {
		end = w.over
	}
	if err := w.c.SetWriteDeadline(end); err != nil {
		return 0, err
	}
	return w.c.Write(b)
}
