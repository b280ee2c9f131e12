package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"

	"tarry/api/beanstalk"
	"tarry/cluster"
)

// beanstalkPort is the port for beanstalkd clients of one node, or none.
type beanstalkPort struct {
	listener net.Listener // nil: the protocol is switched off
	maxJob   int
	maxConns int
	server   *beanstalk.Server
	log      *slog.Logger
	failed   chan error // why it stopped by itself

	refusing atomic.Bool // puts, since a signal asked for it
	signals  chan os.Signal
	work     sync.WaitGroup
	closing  sync.Once
}

// listenBeanstalk takes the port, so that a port in use is told before anything
// is started.
func listenBeanstalk(cfg *serverConfig) (*beanstalkPort, error) {
	p := &beanstalkPort{maxJob: cfg.BeanstalkMaxJob, maxConns: cfg.MaxConnections, failed: make(chan error, 1), signals: make(chan os.Signal, 1)}
	if cfg.beanstalkAddr() == "" {
		return p, nil
	}
	var err error
	if p.listener, err = net.Listen("tcp", cfg.beanstalkAddr()); err != nil {
		return nil, fmt.Errorf("listen for beanstalkd clients (--beanstalk-addr): %w", err)
	}
	return p, nil
}

// addr is where it listens, for people.
func (p *beanstalkPort) addr() string {
	if p.listener == nil {
		return "off"
	}
	return p.listener.Addr().String()
}

// serve starts serving and does not block. The caller closes the port later.
func (p *beanstalkPort) serve(node *cluster.Node, draining func() bool, log *slog.Logger) {
	if p.listener == nil {
		return
	}
	p.log = log
	p.server = beanstalk.New(beanstalk.Options{
		Queue: node, Inspector: node, Logger: log, MaxJobSize: p.maxJob, MaxConnections: p.maxConns,
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
	p.work.Go(func() {
		if err := p.server.Serve(p.listener); !errors.Is(err, beanstalk.ErrClosed) {
			p.failed <- err
		}
	})
}

// close ends what serve started, and waits for it. It gives back the jobs that
// clients hold, for which it takes closeTime at most. It may be called again.
func (p *beanstalkPort) close() {
	if p.listener == nil {
		return
	}
	p.closing.Do(func() {
		if p.server == nil {
			p.listener.Close()
			return
		}
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
