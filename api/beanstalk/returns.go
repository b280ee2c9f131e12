package beanstalk

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// A client that closes a connection and opens another one expects that its jobs are ready then, as
// with beanstalkd, which handles one event after the other. So before the first command of a
// connection that could see the difference, the server looks for connections of the same client
// address that the client has closed, and waits until their jobs are given back.

const (
	// maxChecked bounds the connections that are checked for a new one.
	maxChecked = 1024
	// maxReturnWait bounds the wait for the jobs of those that are closed. Without a leader they
	// cannot be given back.
	maxReturnWait = 2 * time.Second
)

// returns are the connections that may have to give back jobs, by client address.
type returns struct {
	mu sync.Mutex
	of map[string]map[*returning]struct{}
}

// returning is such a connection: one that has reserved, so that it may have jobs or wait for one.
type returning struct {
	host string
	raw  syscall.RawConn // nil: it is none of a socket
	over chan struct{}   // closed once its jobs are given back, or cannot be
}

// add registers a connection. The caller calls remove when its jobs are given back.
func (r *returns) add(nc net.Conn, host string) *returning {
	c := &returning{host: host, raw: rawOf(nc), over: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[string]map[*returning]struct{}{}
	}
	if r.of[host] == nil {
		r.of[host] = map[*returning]struct{}{}
	}
	r.of[host][c] = struct{}{}
	return c
}

func (r *returns) remove(c *returning) {
	close(c.over)
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.of[c.host], c); len(r.of[c.host]) == 0 {
		delete(r.of, c.host)
	}
}

// await blocks until the connections of an address that its client has closed have given back
// their jobs, or stop is closed; own is not one of them.
func (r *returns) await(host string, own *returning, stop <-chan struct{}) {
	r.mu.Lock()
	list := make([]*returning, 0, min(len(r.of[host]), maxChecked))
	for c := range r.of[host] {
		if len(list) == maxChecked {
			break
		}
		if c != own {
			list = append(list, c)
		}
	}
	r.mu.Unlock()
	var late <-chan time.Time
	for _, c := range list {
		if !c.closed() {
			continue
		}
		if late == nil {
			t := time.NewTimer(maxReturnWait)
			defer t.Stop()
			late = t.C
		}
		select {
		case <-c.over:
		case <-late:
			return
		case <-stop:
			return
		}
	}
}

// closed reports whether the client, or this node, has closed the connection.
func (c *returning) closed() bool {
	if c.raw == nil {
		return false
	}
	gone := false
	err := c.raw.Control(func(fd uintptr) { gone = hungUp(int(fd)) })
	return gone || err != nil
}

// rawOf returns the socket below a connection; nil: there is none.
func rawOf(nc net.Conn) syscall.RawConn {
	for nc != nil {
		if s, is := nc.(syscall.Conn); is {
			raw, err := s.SyscallConn()
			if err != nil {
				return nil
			}
			return raw
		}
		below, is := nc.(interface{ NetConn() net.Conn })
		if !is {
			return nil
		}
		nc = below.NetConn()
	}
	return nil
}

// hostOf returns the address of a client without its port.
func hostOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote // of a socket file
	}
	return host
}

// showsReturns reports whether a command can show that a job of a closed connection is not back
// yet. A reserve that waits gets it when it is.
func (v verb) showsReturns() bool {
	switch v {
	case put, use, watch, ignore, listTubeUsed, listTubesWatched, reserve, quit, authenticate, unknown:
		return false
	}
	return true
}

// awaitReturns blocks before the first command that can show the jobs of a connection that this
// client has closed before.
func (c *conn) awaitReturns(v verb) {
	if c.settled || !v.showsReturns() {
		return
	}
	c.settled = true
	c.server.returns.await(c.host(), c.returning, c.server.ctx.Done())
}

func (c *conn) host() string { return hostOf(c.remote) }
