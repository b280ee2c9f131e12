// Package server is tarry server: its settings, and the process that runs a node. Start at Serve and at
// Config; settings.go has each flag.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/semaphore"

	"tarry/api"
	"tarry/api/access"
	"tarry/api/clienttls"
	"tarry/api/httpx"
	"tarry/api/ui"
	"tarry/cluster"
	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/logtail"
	"tarry/cmd/tarry/internal/tracing"
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

// keptLog is how many bytes of its log a node keeps in memory, for GET /v1/cluster/node/log: some
// thousand lines.
const keptLog = 256 << 10

// maxHeaderBytes bounds what a connection costs before its request is looked at.
const maxHeaderBytes = 32 << 10

// maxScrapes bounds the replies with metrics that are made at a time. Each has megabytes.
const maxScrapes = 16

// Serve runs a node until a signal stops it.
func Serve(ctx context.Context, cfg *Config, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log := newLogger(cfg, stderr)
	if err := relaxTimers(); err != nil {
		log.Info("the timer slack of threads stays as it is, so the node uses more processor time; a binary built with cgo cannot change it: build with CGO_ENABLED=0, as make does", "error", err)
	}
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
	connections := semaphore.NewWeighted(int64(files.Clients))
	tubes, err := TakeBeanstalk(cfg, connections)
	if err != nil {
		return err
	}
	defer tubes.close()
	closeProfiles, err := serveProfiles(cfg.PprofAddr, cfg.hosts())
	if err != nil {
		return err
	}
	defer closeProfiles()
	tell, err := ownSupervisor(log)
	if err != nil {
		return err
	}
	defer tell.close()
	ctx, left := context.WithCancel(ctx)
	defer left()
	spans, err := startTraces(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer spans.close() // after the node has stopped
	secure, err := cfg.openTLS(log)
	if err != nil {
		return err
	}
	defer secure.watch(ctx, func() { cfg.reload(log) })()
	tubes.secure = secure.beanstalk
	record, err := openAuditLog(ctx, cfg.AuditLog, log)
	if err != nil {
		return err
	}
	defer record.close()
	pusher := push.New(push.Options{Allow: cfg.PushAllow, Logger: log, Trace: spans.post(), Secrets: cfg.secrets})
	settings := cfg.nodeConfig(secure, files, log)
	settings.Left, settings.InvitationUsed = left, record.invitationUsed
	settings.Problems = pusher.Problems
	settings.Lead = func(ctx context.Context, n *cluster.Node) { pusher.Run(ctx, spans.queue(n)) }
	node, err := cluster.Start(settings)
	if err != nil {
		return startError(err)
	}
	defer stopNode(node, log)
	// The leader of a shard pushes the shard's jobs.
	prometheus.WrapRegistererWith(prometheus.Labels{"shard": "0"}, node.Metrics()).MustRegister(pusher)
	node.Metrics().MustRegister(secure)
	spans.publish(node)
	listener = secure.http(httpx.LimitRequests(listener, cfg.MaxConnections, connections))
	return serveChecked(ctx, cfg, node, record, spans.queue(node), listener, tubes, tell, log)
}

// nodeConfig is the configuration of a node as far as the command line determines it.
func (cfg *Config) nodeConfig(secure secured, files openFiles, log *slog.Logger) cluster.Config {
	if cfg.Shards > 1 {
		log.Warn("--shards is unfinished: use it for tests only", "shards", cfg.Shards)
	}
	return cluster.Config{
		NodeID: cfg.NodeID, DataDir: cfg.DataDir, Version: cli.Version,
		ClusterAddr: cfg.ClusterAddr, GossipAddr: cfg.GossipAddr, AdvertiseHost: cfg.AdvertiseHost,
		HTTPAdvertise: cfg.advertisedHTTP(), TLS: secure.nodes, Join: cfg.Seeds(), JoinInvitationFile: cfg.JoinInvitationFile, BootstrapExpect: cfg.expect(), Shards: cfg.Shards,
		Follow: secure.primary, CacheBytes: cfg.CacheBytes, MetricsTopics: cfg.MetricsTopics, OpenFiles: files.node, DiskLowWater: cfg.DiskLowWater, MaxClockOffset: cfg.MaxClockOffset, NonVoter: cfg.NonVoter, HoldVersion: cfg.HoldVersion, Logger: log,
		Backups: cfg.Backups.schedule(), LogStore: cfg.LogStore, GossipKeys: secure.gossip, GossipVerify: cfg.GossipVerify,
		Fatal: func(err error) { os.Exit(stopCode(err, log)) },
	}
}

// stopCode logs why a running node must end at once and returns the exit code: 3 unless a restart
// is all that is needed, because supervisors do not restart a node that ended with 3.
func stopCode(err error, log *slog.Logger) int {
	if cluster.RestartFixes(err) {
		log.Error("stopping at once; the node only has to be started again", "error", err)
		return cli.ExitFailed
	}
	log.Error("stopping at once, because going on would risk data; start the node again when the cause is fixed", "error", err)
	return cli.ExitStopped
}

// startError returns the error with which the command ends.
func startError(err error) error {
	if cluster.NeedsPerson(err) {
		return cli.RefusedStart{Err: err}
	}
	return err
}

func stopNode(node *cluster.Node, log *slog.Logger) {
	if err := node.Stop(); err != nil {
		log.Error("the node did not stop cleanly", "error", err)
		return
	}
	log.Info("stopped")
}

func serveClients(ctx context.Context, cfg *Config, node *cluster.Node, control *access.Control, queue tracing.Queue, listener net.Listener, tubes *beanstalkPort, tell *supervisor, log *slog.Logger) error {
	registry := node.Metrics()
	registry.MustRegister(newBuildInfo(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	pages := serveUI(cfg, control, log)
	server := &http.Server{
		Handler: api.New(api.Options{
			Queue: queue, Operator: readiness{node, tubes}, About: AboutNode(cfg), CheckPush: cfg.PushAllow.Check, Secrets: cfg.secrets, Hosts: cfg.hosts(), Origins: cfg.CORSOrigins, Logger: log, MaxBodyBytes: cfg.MaxBodyBytes,
			Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}), Registry: registry, UI: pages, Draining: node.Draining, Drained: node.Drained,
			Access: control, CheckBootstrap: ChecksBootstrap(cfg.DataDir), AuthReset: &ResetFile{Dir: cfg.DataDir}, RecentLog: cfg.recent.Lines, LogLevel: cfg.level,
		}),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       5 * time.Minute,
		MaxHeaderBytes:    maxHeaderBytes,
		// Then "OPTIONS *" is answered like all that is not there.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     httpLog(log),
	}
	server.ConnContext = httpx.ConnContext
	if cfg.HTTPTLS.Mode != clienttls.Off {
		server.ConnContext, server.Handler = rememberConn, withTLSState(server.Handler)
	}
	failed := make(chan error, 1)
	go func() {
		failed <- server.Serve(httpx.JSONErrors(listener))
	}()
	tubes.ready = control.Ready()
	tubes.serve(node, queue, control, node.Draining, log)
	defer tubes.close() // before the node stops, whatever ends the process
	if cfg.CORSOrigins.Any() {
		log.Warn("--cors-origins is *: any web page, in any browser that reaches this node, can read and change everything")
	}
	log.Info("serving", "node", cfg.NodeID, "http", listener.Addr().String(), "version", cli.Version, "data", cfg.DataDir)
	tell.say(notifyReady)
	defer tell.feed(ctx, node.Responds)()
	select {
	case err := <-failed:
		return fmt.Errorf("serve clients: %w", err)
	case err := <-tubes.failed:
		return fmt.Errorf("serve beanstalkd clients: %w", err)
	case <-ctx.Done():
	}
	log.Info("draining")
	tell.say(notifyStopping)
	node.BeginStop()
	tubes.close() // first, while the jobs that its clients hold can still be given back
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	node.Drain(drain)
	cancel()
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if err := server.Shutdown(finish); err != nil {
		log.Warn("closing the connections that are still open", "error", err)
		_ = server.Close() // its only error is of listeners, which Shutdown has closed
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve clients: %w", err)
	}
	return nil
}

// serveUI returns the dashboard; nil with --ui=off.
func serveUI(cfg *Config, control *access.Control, log *slog.Logger) func(http.Handler) http.Handler {
	if cfg.UI == UIOff {
		return nil
	}
	return ui.New(ui.Options{Node: cfg.NodeID, Version: cli.Version, ReadOnly: cfg.UI == UIReadOnly, Logger: log, Sessions: control}).Handler
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

// newLogger returns the log of a node, which also keeps its last lines.
func newLogger(cfg *Config, out io.Writer) *slog.Logger {
	cfg.recent = logtail.New(keptLog)
	out = io.MultiWriter(cfg.recent, out) // in this order, they are kept also if out takes nothing
	cfg.level = new(slog.LevelVar)
	cfg.level.Set(cfg.LogLevel)
	options := &slog.HandlerOptions{Level: cfg.level}
	var handler slog.Handler = slog.NewTextHandler(out, options)
	if cfg.LogFormat == "json" {
		handler = slog.NewJSONHandler(out, options)
	}
	return slog.New(newOnceInAWhile(handler))
}
