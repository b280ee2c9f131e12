package framerpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// dialTimeout bounds an attempt to connect.
	dialTimeout = 5 * time.Second
	// The pause after a failed attempt grows from firstPause to lastPause. Calls fail at
	// once meanwhile.
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// Client makes calls to one server over one connection. It connects with the first call,
// and again after a failure. It implements grpc.ClientConnInterface. The only call option is
// Late.
type Client struct {
	dial   func(context.Context) (net.Conn, error)
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	session *session      // nil: there is no connection
	dialing chan struct{} // closes when the attempt under way has ended; nil: there is none
	failed  error         // of the last attempt
	pause   time.Duration
	again   time.Time // when the next attempt may begin
}

// NewClient returns a Client. dial connects to the server. It must be closed.
func NewClient(dial func(context.Context) (net.Conn, error)) *Client {
	c := &Client{dial: dial}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Invoke implements grpc.ClientConnInterface. It blocks until the reply, the failure of
// the connection or the end of ctx; a reply that has arrived wins. Without a reply the error is a
// *LostError. args must not be changed afterwards.
func (c *Client) Invoke(ctx context.Context, method string, args, result any, opts ...grpc.CallOption) error {
	s, err := c.connected(ctx)
	if err != nil {
		return err
	}
	x := newCall()
	x.late = lateOf(opts)
	id, err := s.begin(x)
	if err != nil {
		return err
	}
	if err := s.put(outgoing{exchange: id, kind: kindCall, method: method, message: args, of: x}); err != nil {
		s.forget(id)
		return lost(false, codes.Unavailable, err)
	}
	var r reply
	select {
	case r = <-x.reply:
	case <-ctx.Done():
		r = s.giveUp(id, x, ctx.Err())
	}
	if r.err != nil {
		return r.err
	}
	if err := decode(r.payload, result); err != nil {
		return lost(true, codes.Unavailable, fmt.Errorf("the reply cannot be read: %w", err))
	}
	return nil
}

// NewStream implements grpc.ClientConnInterface. The stream ends with ctx, which must be
// ended. Its messages must not be changed after they were sent.
func (c *Client) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := c.connected(ctx)
	if err != nil {
		return nil, err
	}
	late := lateOf(opts)
	stream := &clientStream{ctx: ctx, session: s, inbox: make(chan []byte, inboxSize), over: make(chan struct{}), late: late}
	x := &call{stream: stream, late: late}
	if stream.id, err = s.begin(x); err != nil {
		return nil, err
	}
	if err := s.put(outgoing{exchange: stream.id, kind: kindStream, method: method, of: x}); err != nil {
		s.forget(stream.id)
		return nil, lost(false, codes.Unavailable, err)
	}
	context.AfterFunc(ctx, func() {
		s.abandon(stream.id, x)
		stream.finish(status.FromContextError(ctx.Err()).Err())
	})
	return stream, nil
}

// Close closes the connection and waits for its goroutines. Calls under way fail.
func (c *Client) Close() {
	c.cancel()
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	if s != nil {
		s.close(errClosed)
	}
	c.work.Wait()
}

// connected returns the open connection. It connects if there is none. Its error is a
// *LostError of a request that was not sent.
func (c *Client) connected(ctx context.Context) (*session, error) {
	for {
		c.mu.Lock()
		switch {
		case c.ctx.Err() != nil:
			c.mu.Unlock()
			return nil, lost(false, codes.Unavailable, errClosed)
		case c.session != nil && c.session.open():
			s := c.session
			c.mu.Unlock()
			return s, nil
		case c.dialing == nil && time.Now().Before(c.again):
			err := c.failed
			c.mu.Unlock()
			return nil, lost(false, codes.Unavailable, err)
		case c.dialing == nil:
			c.dialing = make(chan struct{})
			c.work.Go(c.connect)
		}
		over := c.dialing
		c.mu.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
			return nil, &LostError{Status: status.FromContextError(ctx.Err())}
		}
	}
}

// connect makes one attempt to connect.
func (c *Client) connect() {
	ctx, cancel := context.WithTimeout(c.ctx, dialTimeout)
	conn, err := c.dial(ctx)
	cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		close(c.dialing)
		c.dialing = nil
	}()
	switch {
	case err != nil:
		c.failed = err
		c.pause = min(max(2*c.pause, firstPause), lastPause)
		c.again = time.Now().Add(c.pause)
	case c.ctx.Err() != nil:
		conn.Close()
	default:
		c.pause = 0
		s := newSession(conn)
		c.session = s
		c.work.Go(s.run)
	}
}

// session is the caller's end of one connection.
type session struct {
	*link

	calling sync.Mutex
	calls   map[uint64]*call // nil after the connection has failed
	last    uint64
}

func newSession(conn net.Conn) *session {
	return &session{link: newLink(conn), calls: map[uint64]*call{}}
}

// run reads replies until the connection ends, and fails the calls that are left.
func (s *session) run() {
	var writing sync.WaitGroup
	writing.Go(func() {
		s.close(s.write(func(o outgoing, err error) {
			if x := s.forget(o.exchange); x != nil {
				x.fail(codes.InvalidArgument, err)
			}
		}))
	})
	s.close(s.read())
	writing.Wait()
	s.fail(s.err)
}

// fail fails all calls, and refuses further ones.
func (s *session) fail(why error) {
	s.calling.Lock()
	all := s.calls
	s.calls = nil
	s.calling.Unlock()
	for _, x := range all {
		x.fail(codes.Unavailable, why)
	}
}

func (s *session) read() error {
	r := newFrameReader(s.conn)
	for {
		h, err := r.head()
		if err != nil {
			return err
		}
		payload, err := r.payload(h.payload)
		if err != nil {
			return err
		}
		if err := s.handle(h, payload); err != nil {
			return err
		}
	}
}

// handle processes a frame. Frames of exchanges that have ended here are ignored: they
// were under way.
func (s *session) handle(h head, payload []byte) error {
	switch h.kind {
	case kindReply, kindEnd:
		if x := s.forget(h.exchange); x != nil {
			x.finish(h.kind, payload)
		}
	case kindMessage:
		s.calling.Lock()
		x := s.calls[h.exchange]
		s.calling.Unlock()
		if x != nil && x.stream == nil {
			return errors.New("a call was sent a message of a stream")
		}
		if x != nil {
			x.stream.deliver(payload)
		}
	default:
		return fmt.Errorf("the called node began an exchange of kind %d", h.kind)
	}
	return nil
}

// begin registers an exchange and returns its number.
func (s *session) begin(x *call) (uint64, error) {
	s.calling.Lock()
	defer s.calling.Unlock()
	switch {
	case s.calls == nil:
		return 0, lost(false, codes.Unavailable, errClosed)
	case len(s.calls) >= maxExchanges:
		return 0, lost(false, codes.Unavailable, fmt.Errorf("more than %d calls are under way to one node", maxExchanges))
	}
	s.last++
	s.calls[s.last] = x
	return s.last, nil
}

// forget removes an exchange and returns it; nil: it has ended.
func (s *session) forget(id uint64) *call {
	s.calling.Lock()
	defer s.calling.Unlock()
	x := s.calls[id]
	delete(s.calls, id)
	return x
}

// giveUp ends a call whose context has ended, and returns what it ended with.
func (s *session) giveUp(id uint64, x *call, why error) reply {
	there, sent := s.abandon(id, x)
	if !there {
		return <-x.reply // who removed it is about to deliver what it ended with
	}
	return reply{err: &LostError{Status: status.FromContextError(why), Sent: sent}}
}

// abandon ends an exchange that nobody waits for any more. It returns whether the exchange had
// not ended, and whether it may have been sent. One with a function for what comes late is kept
// until the other end has ended it, which the cancellation makes it do.
func (s *session) abandon(id uint64, x *call) (there, sent bool) {
	s.calling.Lock()
	_, there = s.calls[id]
	sent = !x.withdraw()
	if there && sent && x.late != nil {
		x.left = true
	} else {
		delete(s.calls, id)
	}
	s.calling.Unlock()
	if sent && there {
		_ = s.put(outgoing{exchange: id, kind: kindCancel}) // a closed connection cancels it too
	}
	return there, sent
}
