package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"tarry/api/beanstalk"
	"tarry/cluster"
	"tarry/internal/sleep"
	"tarry/job"
)

// beanstalkPort is the port or the socket file for beanstalkd clients of a node, if it
// has one.
type beanstalkPort struct {
	addr     string // host:port or unix:path; empty: the protocol is switched off
	maxJob   int
	maxConns int
	allConns *semaphore.Weighted // of this port and others
	server   *beanstalk.Server
	log      *slog.Logger
	failed   chan error // why it stopped by itself
	open     atomic.Bool

	refusing atomic.Bool // puts, since a signal asked for it
	signals  chan os.Signal
	stop     context.CancelFunc
	work     sync.WaitGroup
	closing  sync.Once
}

// checkBeanstalk checks that the port is free, so that one in use is reported before
// anything starts. It does not keep the port open.
func checkBeanstalk(cfg *serverConfig, all *semaphore.Weighted) (*beanstalkPort, error) {
	p := &beanstalkPort{
		addr: cfg.beanstalkAddr(), maxJob: cfg.BeanstalkMaxJob, maxConns: cfg.MaxConnections, allConns: all,
		failed: make(chan error, 1), signals: make(chan os.Signal, 1),
	}
	if p.addr == "" {
		return p, nil
	}
	l, err := p.listen()
	if err != nil {
		return nil, err
	}
	return p, l.Close()
}

func (p *beanstalkPort) listen() (l net.Listener, err error) {
	if path, isFile := strings.CutPrefix(p.addr, unixPrefix); isFile {
		l, err = listenUnix(path)
	} else {
		l, err = net.Listen("tcp", p.addr)
	}
	if err != nil {
		return nil, fmt.Errorf("listen for beanstalkd clients (--beanstalk-addr): %w", err)
	}
	return l, nil
}

// String returns the address, for people.
func (p *beanstalkPort) String() string { return cmp.Or(p.addr, "off") }

// serve starts serving, once the node can, and does not block. The caller closes the
// port later.
func (p *beanstalkPort) serve(node *cluster.Node, draining func() bool, log *slog.Logger) {
	if p.addr == "" {
		return
	}
	p.log = log
	p.server = beanstalk.New(beanstalk.Options{
		Queue: node.Shard(), Logger: log, MaxJobSize: p.maxJob, MaxConnections: p.maxConns, AllConnections: p.allConns,
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
		if err := p.run(ctx, node); err != nil && !errors.Is(err, beanstalk.ErrClosed) {
			p.failed <- err
		}
	})
}

// run opens the port when the node can serve and serves until the server is shut
// down. beanstalkd's clients expect as much: while it recovers its binlog there is
// no port.
func (p *beanstalkPort) run(ctx context.Context, node *cluster.Node) error {
	if !waitUntilServing(ctx, node) {
		return nil
	}
	l, err := p.listen()
	if err != nil {
		return err
	}
	p.open.Store(true)
	return p.server.Serve(l)
}

// waitUntilServing blocks until a consistent read succeeds. It is false when ctx
// ended first.
func waitUntilServing(ctx context.Context, node *cluster.Node) bool {
	const pause = 50 * time.Millisecond // a read waits for a leader by itself
	for {
		if _, err := node.Shard().Topic(ctx, "default", false); err == nil {
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
	if r.tubes.addr != "" && !r.tubes.open.Load() {
		of.Ready = false
		of.Reasons = append(of.Reasons, "the port for beanstalkd clients is not open yet")
	}
	return of
}

// close ends what serve started, and waits for it. It gives back the jobs that
// clients hold, for which it takes closeTime at most. It may be called again.
func (p *beanstalkPort) close() {
	if p.server == nil {
		return
	}
	p.closing.Do(func() {
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
