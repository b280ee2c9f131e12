package main

import (
	"context"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/semaphore"

	"tarry/api"
	"tarry/cluster"
	"tarry/push"
)

const (
	// closeTime bounds giving back what beanstalkd clients hold, drainTime handing
	// leadership over, stopTime the answers that are under way then. Together
	// they stay below the ten seconds that container engines give by default.
	closeTime = 1500 * time.Millisecond
	drainTime = 4 * time.Second
	stopTime  = 4 * time.Second
)

// maxHeaderBytes bounds what a connection costs before its request is looked at.
const maxHeaderBytes = 32 << 10

// serve runs a node until a signal stops it.
func serve(ctx context.Context, cfg *serverConfig, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log := newLogger(cfg, stderr)
	// Other users must not read jobs. The stores' libraries create world-readable files,
	// which only the umask changes.
	syscall.Umask(0o077)
	files, err := cfg.openFiles(log)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cfg.HTTPAddr)
	if err != nil {
		return fmt.Errorf("listen for clients (--http-addr): %w", err)
	}
	defer listener.Close()
	connections := semaphore.NewWeighted(int64(files.clients))
	tubes, err := checkBeanstalk(cfg, connections)
	if err != nil {
		return err
	}
	defer tubes.close()
	closeProfiles, err := serveProfiles(cfg.PprofAddr, cfg.hosts())
	if err != nil {
		return err
	}
	defer closeProfiles()
	ctx, left := context.WithCancel(ctx)
	defer left()
	pusher := push.New(push.Options{Allow: cfg.PushAllow, Logger: log})
	node, err := cluster.Start(cluster.Config{
		NodeID: cfg.NodeID, DataDir: cfg.DataDir, Version: version,
		ClusterAddr: cfg.ClusterAddr, GossipAddr: cfg.GossipAddr, AdvertiseHost: cfg.AdvertiseHost,
		HTTPAdvertise: cfg.advertisedHTTP(), Join: cfg.seeds(), BootstrapExpect: cfg.expect(),
		CacheBytes: cfg.CacheBytes, OpenFiles: files.node, DiskLowWater: cfg.DiskLowWater, MaxClockOffset: cfg.MaxClockOffset, HoldVersion: cfg.HoldVersion, Logger: log, Left: left,
		LogStore: cfg.LogStore,
		Lead:     func(ctx context.Context, n *cluster.Node) { pusher.Run(ctx, n.Shard()) },
		Fatal: func(err error) {
			log.Error("stopping at once, because going on would risk data; start the node again when the cause is fixed", "error", err)
			os.Exit(exitStopped)
		},
	})
	if err != nil {
		return err
	}
	defer func() {
		if err := node.Stop(); err != nil {
			log.Error("the node did not stop cleanly", "error", err)
			return
		}
		log.Info("stopped")
	}()
	node.Metrics().MustRegister(pusher)
	listener = api.LimitConnections(listener, cfg.MaxConnections, connections, api.RefusedConnection)
	return serveClients(ctx, cfg, node, listener, tubes, log)
}

func serveClients(ctx context.Context, cfg *serverConfig, node *cluster.Node, listener net.Listener, tubes *beanstalkPort, log *slog.Logger) error {
	registry := node.Metrics()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var draining atomic.Bool
	drained := make(chan struct{})
	server := &http.Server{
		Handler: api.New(api.Options{
			Queue: node.Shard(), Operator: readiness{node, tubes}, CheckPush: cfg.PushAllow.Check, Hosts: cfg.hosts(), Logger: log, MaxBodyBytes: cfg.MaxBodyBytes,
			Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), Registry: registry, Draining: draining.Load, Drained: drained,
		}),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       5 * time.Minute,
		MaxHeaderBytes:    maxHeaderBytes,
		// Then "OPTIONS *" is answered like all that is not there.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     httpLog(log),
	}
	failed := make(chan error, 1)
	go func() {
		failed <- server.Serve(api.JSONErrors(listener))
	}()
	tubes.serve(node, draining.Load, log)
	defer tubes.close() // before the node stops, whatever ends the process
	log.Info("serving", "node", cfg.NodeID, "http", listener.Addr().String(), "beanstalkd", tubes.String(), "version", version, "data", cfg.DataDir)
	select {
	case err := <-failed:
		return fmt.Errorf("serve clients: %w", err)
	case err := <-tubes.failed:
		return fmt.Errorf("serve beanstalkd clients: %w", err)
	case <-ctx.Done():
	}
	log.Info("draining")
	draining.Store(true)
	close(drained)
	tubes.close() // first, while the jobs that its clients hold can still be given back
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	node.Drain(drain)
	cancel()
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if err := server.Shutdown(finish); err != nil {
		log.Warn("closing the connections that are still open", "error", err)
		server.Close()
	}
	<-failed
	return nil
}

// httpLog gives Go's HTTP server the logger it wants. What it says names addresses,
// so it is an attribute: the message is the same each time.
func httpLog(to *slog.Logger) *stdlog.Logger {
	return stdlog.New(lines(func(text string) { to.Warn("the HTTP server complains", "text", text) }), "", 0)
}

// lines is a writer that gets one line at a time.
type lines func(text string)

func (f lines) Write(line []byte) (int, error) {
	f(strings.TrimSpace(string(line)))
	return len(line), nil
}

func newLogger(cfg *serverConfig, out io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.LogLevel}
	var handler slog.Handler = slog.NewTextHandler(out, options)
	if cfg.LogFormat == "json" {
		handler = slog.NewJSONHandler(out, options)
	}
	return slog.New(newOnceInAWhile(handler))
}
