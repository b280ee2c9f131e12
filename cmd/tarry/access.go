package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"tarry/api/access"
	"tarry/api/audit"
	"tarry/auth"
	"tarry/cluster"
	"tarry/job/jobpb"
	"tarry/tracing"
)

// serveChecked serves the clients of a node, and checks what they may do.
func serveChecked(ctx context.Context, cfg *serverConfig, node *cluster.Node, queue tracing.Queue, listener net.Listener, tubes *beanstalkPort, tell *supervisor, log *slog.Logger) error {
	control, closeAccess, err := openAccess(ctx, cfg, node, log)
	if err != nil {
		return err
	}
	defer closeAccess()
	return serveClients(ctx, cfg, node, control, queue, listener, tubes, tell, log)
}

// openAccess returns what checks the clients of a node, and what closes it.
func openAccess(ctx context.Context, cfg *serverConfig, node *cluster.Node, log *slog.Logger) (*access.Control, func(), error) {
	if err := makeBootstrapSecret(cfg.DataDir); err != nil {
		return nil, nil, err
	}
	var record *audit.Log
	stop := func() {}
	if cfg.AuditLog != "" {
		var err error
		if record, err = audit.Open(cfg.AuditLog, log); err != nil {
			return nil, nil, err
		}
		node.Metrics().MustRegister(record)
		stop = reopenAtHangup(ctx, record)
	}
	control := access.Open(access.Options{
		Source: node.Shard(), Audit: record, Registry: node.Metrics(),
		Leader: func(ctx context.Context) (uint64, error) {
			ctx = auth.NewContext(ctx, auth.System())
			// This has the revision, too, and does not count the tokens.
			a, err := node.Shard().Read(ctx, &jobpb.Read{What: &jobpb.Read_Tokens{Tokens: &jobpb.Page{Max: 1}}}, false)
			return a.GetAuth().GetRevision(), err
		},
	})
	return control, func() { control.Close(); stop(); record.Close() }, nil
}

// reopenAtHangup opens the audit log again at each SIGHUP, until the returned function is
// called.
func reopenAtHangup(ctx context.Context, record *audit.Log) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	var done sync.WaitGroup
	done.Go(func() {
		defer signal.Stop(hangup)
		for {
			select {
			case <-hangup:
				record.Reopen()
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); done.Wait() }
}
