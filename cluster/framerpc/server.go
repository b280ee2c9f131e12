package framerpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// Server serves the calls of other nodes. It implements grpc.ServiceRegistrar.
type Server struct {
	admit   func(ctx context.Context, method string) error
	convert func(error) error
	calls   map[string]func(ctx context.Context, decode func(any) error) (any, error)
	streams map[string]func(grpc.ServerStream) error

	mu     sync.Mutex
	closed bool
	open   map[io.Closer]struct{} // the listener and the connections
	work   sync.WaitGroup
}

// NewServer returns a Server. It refuses the calls for which admit fails, before it reads
// their messages; the caller's address is in ctx (package peer of gRPC). convert returns
// the gRPC status of a handler's error.
func NewServer(admit func(ctx context.Context, method string) error, convert func(error) error) *Server {
	return &Server{
		admit: admit, convert: convert, open: map[io.Closer]struct{}{},
		calls:   map[string]func(context.Context, func(any) error) (any, error){},
		streams: map[string]func(grpc.ServerStream) error{},
	}
}

// RegisterService implements grpc.ServiceRegistrar. It must be called before Serve.
func (s *Server) RegisterService(desc *grpc.ServiceDesc, impl any) {
	name := func(method string) string { return "/" + desc.ServiceName + "/" + method }
	for _, m := range desc.Methods {
		s.calls[name(m.MethodName)] = func(ctx context.Context, decode func(any) error) (any, error) {
			return m.Handler(impl, ctx, decode, nil)
		}
	}
	for _, m := range desc.Streams {
		s.streams[name(m.StreamName)] = func(stream grpc.ServerStream) error { return m.Handler(impl, stream) }
	}
}

// Serve serves the connections of l until Stop, and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	if !s.track(l) {
		return nil
	}
	defer s.untrack(l)
	for {
		c, err := l.Accept()
		if err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.closed {
				return nil
			}
			return err
		}
		if !s.track(c) {
			return nil
		}
		s.work.Go(func() {
			defer s.untrack(c)
			s.serve(c)
		})
	}
}

// Stop closes the listener and all connections, ends the calls under way and waits for
// their handlers.
func (s *Server) Stop() {
	s.mu.Lock()
	s.closed = true
	for c := range s.open {
		c.Close() // ends Accept, or the connection's reader
	}
	s.mu.Unlock()
	s.work.Wait()
}

// track registers what Stop must close. After Stop it closes c and returns false.
func (s *Server) track(c io.Closer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.Close()
		return false
	}
	s.open[c] = struct{}{}
	return true
}

func (s *Server) untrack(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// serverConn is the called end of one connection.
type serverConn struct {
	*link
	server *Server
	ctx    context.Context // ends with the connection; has the caller's address
	cancel context.CancelFunc
	work   sync.WaitGroup // handlers

	mu        sync.Mutex
	exchanges map[uint64]*exchange
}

// exchange is a call or a stream at its handler, and the context of that.
type exchange struct {
	context.Context
	cancel context.CancelFunc
	stream *serverStream // nil for a call
	unsent func(any)     // of OnUnsent; nil: none
}

type exchangeKey struct{}

// Value implements context.Context.
func (x *exchange) Value(key any) any {
	if key == (exchangeKey{}) {
		return x
	}
	return x.Context.Value(key)
}

// OnUnsent makes f get each message of the exchange whose handler has ctx that certainly does not
// reach the caller: the connection ended before a byte of it was written. A handler calls it before
// it sends or returns anything. f must not block. It does not get a message for which SendMsg
// fails. If ctx is of no exchange, OnUnsent does nothing.
func OnUnsent(ctx context.Context, f func(message any)) {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		x.unsent = f
	}
}

// serve serves a connection until it ends, and waits for its handlers.
func (s *Server) serve(conn net.Conn) {
	ctx := grpcpeer.NewContext(context.Background(), &grpcpeer.Peer{Addr: conn.RemoteAddr()})
	s.newConn(ctx, conn).serve()
}

func (s *Server) newConn(ctx context.Context, conn net.Conn) *serverConn {
	c := &serverConn{link: newLink(conn), server: s, exchanges: map[uint64]*exchange{}}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

func (c *serverConn) serve() {
	var writing sync.WaitGroup
	writing.Go(func() {
		c.close(c.write(func(o outgoing, err error) {
			c.end(math.MaxInt, o.exchange, status.Errorf(codes.Internal, "the reply cannot be sent: %v", err))
		}))
	})
	c.close(c.read())
	c.cancel()
	c.work.Wait()
	writing.Wait()
}

func (c *serverConn) read() error {
	r := newFrameReader(c.conn)
	for {
		h, err := r.head()
		if err != nil {
			return err
		}
		if h.kind.begins() {
			if refused := c.admitted(h); refused != nil {
				if err := r.skip(h.payload); err != nil {
					return err
				}
				c.end(maxRefusals, h.exchange, refused)
				continue
			}
		}
		payload, err := r.payload(h.payload)
		if err != nil {
			return err
		}
		if err := c.handle(h, payload); err != nil {
			return err
		}
	}
}

// admitted returns why a call is refused, before its message is read.
func (c *serverConn) admitted(h head) error {
	if err := c.server.admit(c.ctx, h.method); err != nil {
		return err
	}
	known := c.server.streams[h.method] != nil
	if h.kind == kindCall {
		known = c.server.calls[h.method] != nil
	}
	if !known {
		return status.Errorf(codes.Unimplemented, "method %q is not known here: upgrade the older node", h.method)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.exchanges) >= maxExchanges {
		return status.Errorf(codes.InvalidArgument, "more than %d calls are under way on one connection", maxExchanges)
	}
	return nil
}

// handle processes a frame. An error ends the connection: the caller breaks the rules.
func (c *serverConn) handle(h head, payload []byte) error {
	switch h.kind {
	case kindCall:
		return c.begin(h, nil, func(x *exchange) { c.call(x, h, payload) })
	case kindStream:
		stream := &serverStream{conn: c, id: h.exchange, inbox: make(chan []byte, inboxSize)}
		return c.begin(h, stream, func(*exchange) {
			c.end(maxExchanges, h.exchange, c.server.convert(c.server.streams[h.method](stream)))
		})
	case kindMessage:
		if x := c.exchange(h.exchange); x != nil && x.stream == nil {
			return errors.New("a message for a call")
		} else if x != nil {
			x.stream.deliver(payload)
		}
	case kindCancel:
		if x := c.exchange(h.exchange); x != nil {
			x.cancel()
		}
	default:
		return fmt.Errorf("a caller sent a frame of kind %d", h.kind)
	}
	return nil
}

// begin runs a handler. Its context ends when the caller cancels or the connection ends.
func (c *serverConn) begin(h head, stream *serverStream, run func(*exchange)) error {
	ctx, cancel := context.WithCancel(c.ctx)
	x := &exchange{Context: ctx, cancel: cancel, stream: stream}
	if stream != nil {
		stream.exchange = x
	}
	c.mu.Lock()
	_, taken := c.exchanges[h.exchange]
	if !taken {
		c.exchanges[h.exchange] = x
	}
	c.mu.Unlock()
	if taken {
		cancel()
		return fmt.Errorf("exchange %d was begun twice", h.exchange)
	}
	c.work.Go(func() {
		defer cancel()
		run(x)
	})
	return nil
}

// call runs the handler of a call and sends its reply.
func (c *serverConn) call(x *exchange, h head, payload []byte) {
	reply, err := c.server.calls[h.method](x, func(m any) error {
		if err := decode(payload, m); err != nil {
			return status.Errorf(codes.InvalidArgument, "the message cannot be read: %v", err)
		}
		return nil
	})
	if err != nil {
		c.end(maxExchanges, h.exchange, c.server.convert(err))
		return
	}
	o := outgoing{exchange: h.exchange, kind: kindReply, message: reply, from: x}
	if c.putWithin(maxExchanges, o) != nil { // the caller learns that the connection failed
		o.notWritten()
	}
	c.forget(h.exchange)
}

// end ends an exchange with a status error; nil: without an error. It blocks while most or more
// frames wait.
func (c *serverConn) end(most int, id uint64, err error) {
	o := outgoing{exchange: id, kind: kindEnd}
	if err != nil {
		o.message = status.Convert(err).Proto()
	}
	_ = c.putWithin(most, o) // the caller learns that the connection failed
	c.forget(id)
}

func (c *serverConn) exchange(id uint64) *exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exchanges[id]
}

func (c *serverConn) forget(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.exchanges, id)
}
