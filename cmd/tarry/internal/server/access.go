package server

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
	"tarry/cmd/tarry/internal/tracing"
	"tarry/job/jobpb"
)

// serveChecked serves the clients of a node, and checks what they may do.
func serveChecked(ctx context.Context, cfg *Config, node *cluster.Node, record auditLog, queue tracing.Queue, listener net.Listener, tubes *beanstalkPort, tell *supervisor, log *slog.Logger) error {
	control, closeAccess, err := openAccess(cfg, node, record)
	if err != nil {
		return err
	}
	defer closeAccess()
	return serveClients(ctx, cfg, node, control, queue, listener, tubes, tell, log)
}

// openAccess returns what checks the clients of a node, and what closes it.
func openAccess(cfg *Config, node *cluster.Node, record auditLog) (*access.Control, func(), error) {
	if err := MakeBootstrapSecret(cfg.DataDir); err != nil {
		return nil, nil, err
	}
	if record.Log != nil {
		node.Metrics().MustRegister(record.Log)
	}
	control := access.Open(access.Options{
		Source: node, Audit: record.Log, Registry: node.Metrics(),
		Leader: func(ctx context.Context) (uint64, error) {
			ctx = auth.NewContext(ctx, auth.System())
			// This has the revision, too, and does not count the tokens.
			a, err := node.Queue().Read(ctx, &jobpb.Read{What: &jobpb.Read_Tokens{Tokens: &jobpb.Page{Max: 1}}}, false)
			return a.GetAuth().GetRevision(), err
		},
	})
	return control, control.Close, nil
}

// auditLog is the audit log of a node, without a file if there is none.
type auditLog struct {
	*audit.Log
	stop func() // to reopen it
}

// openAuditLog opens the audit log at a path; empty: there is none.
func openAuditLog(ctx context.Context, path string, log *slog.Logger) (auditLog, error) {
	if path == "" {
		return auditLog{stop: func() {}}, nil
	}
	l, err := audit.Open(path, log)
	if err != nil {
		return auditLog{}, err
	}
	return auditLog{l, reopenAtHangup(ctx, l)}, nil
}

func (l auditLog) close() {
	l.stop()
	l.Close()
}

// invitationUsed records that the leader, this node, lets a node join by an invitation.
func (l auditLog) invitationUsed(id, nodeID string) {
	l.Add(audit.Record{Via: "cluster", Call: "join", Resource: "node " + nodeID + " by invitation " + id, Outcome: audit.Done})
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
