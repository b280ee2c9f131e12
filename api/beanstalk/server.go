package beanstalk

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"tarry/api"
	"tarry/api/access"
	"tarry/api/httpx"
	"tarry/auth"
	"tarry/internal/addrlimit"
	"tarry/internal/sleep"
	"tarry/job"
)

const (
	// DefaultMaxJobSize is beanstalkd's own limit on a body, in bytes.
	DefaultMaxJobSize = 65535
	// HardMaxJobSize is the most that a setting may allow.
	HardMaxJobSize = 1 << 20
)

// Options configures a Server. Queue and Logger are required.
type Options struct {
	Queue  api.Queue
	Logger *slog.Logger
	// Access decides what clients may do; nil means that they may do everything.
	Access *access.Control
	// StrangerTime is how long a client that may do nothing without a token has to send one; 0
	// means DefaultStrangerTime.
	StrangerTime time.Duration
	// MaxJobSize is the largest body in bytes, inclusive; 0 means
	// DefaultMaxJobSize.
	MaxJobSize int
	// MaxConnections bounds the open connections; one too many gets OUT_OF_MEMORY
	// and is closed. 0 means no bound.
	MaxConnections int
	// AllConnections bounds them together with those of other ports; nil means no
	// bound.
	AllConnections *semaphore.Weighted
	// MaxBufferedBytes bounds the bodies of puts, the names of watched tubes and the replies held
	// in memory at a time, over all connections; one client address may have half of it. Commands
	// beyond it get OUT_OF_MEMORY; a client that does not read its reply is disconnected. 0 means
	// 256 MiB.
	MaxBufferedBytes int64
	// Hold is how long a job that was reserved with a delete is kept for the reserve that is
	// expected next; 0 means DefaultHold. If it is negative, jobs are reserved so only if the
	// reserve has arrived with the delete.
	Hold time.Duration
	// Registry gets the server's metrics; nil means that they are not published.
	Registry prometheus.Registerer
	// Draining reports whether puts are refused because this node is about to
	// stop; nil means never.
	Draining func() bool
}

// Server speaks the beanstalkd protocol. See New.
type Server struct {
	Options
	reads    job.Reads
	id       string // 16 hexadecimal digits, new in each process
	started  time.Time
	tubes    *tubes
	counts   counts
	failures failures
	bodies   *addrlimit.Limit // bytes of puts that are being read, of names that are watched, and of replies
	listings chan struct{}    // see maxListings
	hold     time.Duration    // not negative

	complaints complaints
	returns    returns

	ctx    context.Context // ends when Shutdown starts
	cancel context.CancelFunc
	work   sync.WaitGroup // the connections

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	closed    bool
}

// counts are of this process, for the stats command.
type counts struct {
	commands                    [verbs]atomic.Uint64
	connections                 atomic.Uint64 // ever
	ahead                       [aheadOutcomes]atomic.Uint64
	producers, workers, waiting atomic.Int64 // now
}

// New returns a server; call Serve to listen.
func New(o Options) *Server {
	if o.MaxJobSize == 0 {
		o.MaxJobSize = DefaultMaxJobSize
	}
	if o.MaxBufferedBytes == 0 {
		o.MaxBufferedBytes = 256 << 20
	}
	if o.Hold == 0 {
		o.Hold = DefaultHold
	}
	if o.StrangerTime == 0 {
		o.StrangerTime = DefaultStrangerTime
	}
	if o.Access == nil {
		o.Access = access.Everything()
	}
	o.Queue = api.Checked(o.Queue, o.Access)
	if o.Draining == nil {
		o.Draining = func() bool { return false }
	}
	var id [8]byte
	rand.Read(id[:]) // never fails
	s := &Server{
		Options: o, reads: job.Reads{Reader: o.Queue}, id: hex.EncodeToString(id[:]), started: time.Now(), tubes: newTubes(), listings: make(chan struct{}, maxListings), bodies: addrlimit.New(o.MaxBufferedBytes, o.MaxBufferedBytes/2),
		hold: max(o.Hold, 0), listeners: map[net.Listener]struct{}{}, conns: map[*conn]struct{}{},
	}
	s.complaints.log = o.Logger
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if o.Registry != nil {
		register(o.Registry, s)
	}
	return s
}

// ErrClosed is what Serve returns after Shutdown.
var ErrClosed = errors.New("the beanstalkd server is closed")

// acceptPause keeps Serve from spinning while connections cannot be accepted, for
// example because there are no file descriptors left.
const acceptPause = 50 * time.Millisecond

// Serve accepts connections and blocks until l fails or Shutdown is called; then
// it returns ErrClosed. It closes l.
func (s *Server) Serve(l net.Listener) error { return s.ServeAs(l, nil) }

// ServeAs is Serve for clients that have a token without sending one. token returns it for each
// connection; nil means that they have none.
func (s *Server) ServeAs(l net.Listener, token func() (auth.Secret, error)) error {
	defer l.Close()
	if s.MaxConnections > 0 {
		l = httpx.LimitConnections(l, s.MaxConnections, s.AllConnections, outOfMemory+"\r\n")
	}
	if !s.addListener(l) {
		return ErrClosed
	}
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			s.accept(nc, token)
		case s.ctx.Err() != nil:
			return ErrClosed
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			s.Logger.Warn("cannot accept beanstalkd connections for the moment", "error", err)
			sleep.For(s.ctx, acceptPause)
		}
	}
}

func (s *Server) addListener(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.listeners[l] = struct{}{}
	}
	return !s.closed
}

func (s *Server) accept(nc net.Conn, token func() (auth.Secret, error)) {
	c := newConn(s, nc)
	c.bound = token
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		nc.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.work.Add(1)
	s.mu.Unlock()
	s.counts.connections.Add(1)
	go func() {
		defer s.work.Done()
		c.serve()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
}

func (s *Server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Shutdown ends the server: it accepts no new connections, waiting reserves end, each
// connection is closed after its current command, and the jobs that it has reserved
// are released. It blocks until that is done. When ctx ends first, it closes the
// remaining connections and waits only for the commands in progress.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.cancel()
	for l := range s.listeners {
		l.Close()
	}
	for c := range s.conns {
		c.net.SetReadDeadline(longAgo)
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	for c := range s.conns {
		c.net.Close() // also ends a write that nobody reads
		c.cancel()
	}
	s.mu.Unlock()
	<-done
	return ctx.Err()
}
