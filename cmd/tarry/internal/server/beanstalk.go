package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"tarry/api"
	"tarry/api/access"
	"tarry/api/beanstalk"
	"tarry/cluster"
	"tarry/internal/sleep"
	"tarry/job"
)

// beanstalkPort is the ports and socket files for beanstalkd clients of a node.
type beanstalkPort struct {
	at       []*tubeListener // empty: the protocol is switched off
	maxJob   int
	maxConns int
	allConns *semaphore.Weighted             // of this port and others
	secure   func(net.Listener) net.Listener // makes it speak TLS, if that is set
	server   *beanstalk.Server
	log      *slog.Logger
	failed   chan error // why it stopped by itself
	open     atomic.Bool

	refusing atomic.Bool // puts, since a signal asked for it
	signals  chan os.Signal
	stop     context.CancelFunc
	work     sync.WaitGroup
	closing  sync.Once

	ready <-chan struct{} // closed when this node knows what clients may do
}

// TakeBeanstalk takes the addresses and reads the tokens, so that what is wrong is reported before
// the node joins a cluster. Clients cannot connect before serve.
func TakeBeanstalk(cfg *Config, all *semaphore.Weighted) (*beanstalkPort, error) {
	p := &beanstalkPort{
		at: cfg.tubeListeners(), maxJob: cfg.BeanstalkMaxJob, maxConns: cfg.MaxConnections, allConns: all,
		failed: make(chan error, 1), signals: make(chan os.Signal, 1),
	}
	for _, t := range p.at {
		if err := t.checkToken(); err != nil {
			return nil, err
		}
	}
	for _, t := range p.at {
		if err := t.take(); err != nil {
			p.drop()
			return nil, err
		}
	}
	return p, nil
}

// drop gives up the addresses that are not open.
func (p *beanstalkPort) drop() {
	for _, t := range p.at {
		t.drop()
	}
}

// String returns the addresses, for people.
func (p *beanstalkPort) String() string {
	if p.off() {
		return "off"
	}
	addrs := make([]string, len(p.at))
	for i, t := range p.at {
		addrs[i] = t.addr
	}
	return strings.Join(addrs, " ")
}

// off reports whether the node serves no beanstalkd clients.
func (p *beanstalkPort) off() bool { return len(p.at) == 0 }

// listen opens all addresses, or none.
func (p *beanstalkPort) listen() ([]net.Listener, error) {
	var open []net.Listener
	for _, t := range p.at {
		l, err := t.open()
		if err != nil {
			return nil, errors.Join(err, closeAll(open))
		}
		open = append(open, l)
	}
	return open, nil
}

func closeAll(listeners []net.Listener) (err error) {
	for _, l := range listeners {
		err = errors.Join(err, l.Close())
	}
	return err
}

// serve starts serving, once the node can, and does not block. The caller closes the
// port later.
func (p *beanstalkPort) serve(node *cluster.Node, queue api.Queue, control *access.Control, draining func() bool, log *slog.Logger) {
	if p.off() {
		return
	}
	p.log = log
	p.server = beanstalk.New(beanstalk.Options{
		Queue: queue, Access: control, Logger: log, MaxJobSize: p.maxJob, MaxConnections: p.maxConns, AllConnections: p.allConns,
		Registry: node.Metrics(),
		Draining: func() bool { return draining() || p.refusing.Load() },
	})
	notifyRefuse(p.signals)
	p.work.Go(func() {
		for range p.signals {
			log.Info("refusing puts of beanstalkd clients from now on, because a signal asked for it")
			p.refusing.Store(true)
		}
	})
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.work.Go(func() {
		if err := p.run(ctx, node); err != nil {
			p.fails(err)
		}
	})
}

// fails ends the node with the first error.
func (p *beanstalkPort) fails(err error) {
	select {
	case p.failed <- err:
	default:
	}
}

// run opens the port when the node can serve, and starts serving. beanstalkd's clients expect
// as much: while it recovers its binlog there is no port.
func (p *beanstalkPort) run(ctx context.Context, node *cluster.Node) error {
	if !waitUntilServing(ctx, node) {
		return nil
	}
	select {
	case <-p.ready:
	case <-ctx.Done():
		return nil
	}
	open, err := p.listen()
	if err != nil {
		return err
	}
	p.open.Store(true)
	p.log.Info("serving beanstalkd clients", "beanstalkd", p.String())
	for i, l := range open {
		p.work.Go(func() {
			if err := p.server.ServeAs(p.secure(l), p.at[i].ofClients()); !errors.Is(err, beanstalk.ErrClosed) {
				p.fails(err)
			}
		})
	}
	return nil
}

// waitUntilServing blocks until a consistent read succeeds. It is false when ctx
// ended first.
func waitUntilServing(ctx context.Context, node *cluster.Node) bool {
	const pause = 50 * time.Millisecond // a read waits for a leader by itself
	for {
		if _, err := (job.Reads{Reader: node.Queue()}).Topic(ctx, "default", false); err == nil {
			return true
		}
		if !sleep.For(ctx, pause) {
			return false
		}
	}
}

// readiness is the node's, which is not ready before the port for beanstalkd clients
// is open.
type readiness struct {
	*cluster.Node
	tubes *beanstalkPort
}

// Readiness implements api.Operator.
func (r readiness) Readiness() job.Readiness {
	of := r.Node.Readiness()
	if !r.tubes.off() && !r.tubes.open.Load() {
		of.Ready = false
		of.Reasons = append(of.Reasons, "the port for beanstalkd clients is not open yet")
	}
	return of
}

// close ends what serve started, and waits for it. It gives back the jobs that
// clients hold, for which it takes closeTime at most. It may be called again.
func (p *beanstalkPort) close() {
	p.closing.Do(func() {
		defer p.drop()
		if p.server == nil {
			return
		}
		p.stop()
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		if err := p.server.Shutdown(ctx); err != nil {
			p.log.Warn("closed beanstalkd connections with commands under way", "error", err)
		}
		signal.Stop(p.signals)
		close(p.signals)
		p.work.Wait()
	})
}
