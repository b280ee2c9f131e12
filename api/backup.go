package api

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"tarry/api/access"
	"tarry/api/httpx"
	"tarry/api/wire"
	"tarry/cluster/report"
	"tarry/job"
)

// backupType is the media type of a backup.
const backupType = "application/octet-stream"

// backup streams a backup. A failure after the first byte breaks the connection; the backup
// lacks its end then, which every reader of it notices. Unlike other GETs it keeps something
// from others, files and the only place for a backup, so no page of another origin may start it.
// It ends when its caller may not make it any more.
func (s *server) backup(x *call) error {
	if x.foreignGet() {
		return s.crossOrigin(x)
	}
	o, err := backupOptions(x)
	if err != nil {
		return err
	}
	if x.r.Method == http.MethodPost {
		if o.Base, err = backupBase(x); err != nil {
			return err
		}
	}
	if x.r.Method == http.MethodHead {
		return job.Errorf(codeMethod, "a backup is not made for a HEAD; use GET")
	}
	if s.Draining() {
		return job.NotApplied("this node is stopping; use another")
	}
	w := &backupWriter{x: x, timeout: s.Timeout}
	ctx, stop := s.Access.WhileAllowed(x.r.Context(), x.needs.Verbs(), []string{""}) // it has no topic
	defer stop()
	err = s.Operator.Backup(ctx, w, o)
	if err != nil && access.Revoked(ctx) {
		err = access.NotAnyMore()
	}
	if err != nil && x.sent {
		s.Logger.Warn("a backup ended early", "from", x.r.RemoteAddr, "error", err)
		panic(http.ErrAbortHandler)
	}
	return err
}

// backupBase reads the base of an incremental backup from the request.
func backupBase(x *call) (*job.BackupBase, error) {
	httpx.AllowRead(x.w, time.Now(), httpx.ReadTime(job.MaxBackupBase))
	text, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, job.MaxBackupBase))
	if tooLong := new(http.MaxBytesError); errors.As(err, &tooLong) {
		return nil, job.Errorf(job.CodeTooLarge, "the request has more than %d bytes; make a whole backup", job.MaxBackupBase)
	}
	if err != nil {
		return nil, job.Errorf(job.CodeInvalid, "the request could not be read: %w", err)
	}
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Time{})
	return job.ParseBackupBase(string(text))
}

func backupOptions(x *call) (o job.BackupOptions, err error) {
	if o.Stale, err = x.stale(); err != nil {
		return o, err
	}
	if text := x.r.URL.Query().Get("rate"); text != "" {
		if o.Rate, err = strconv.ParseInt(text, 10, 64); err != nil || o.Rate < job.MinBackupRate || o.Rate > job.MaxBackupRate {
			return o, job.Invalid("rate", "is %.40q; it takes a number of bytes a second from %d to %d", text, job.MinBackupRate, job.MaxBackupRate)
		}
	}
	return o, nil
}

// backupWriter sends the head of the response with the first bytes. Each write may take the
// time of a request, so a client that stops reading does not hold a state; one that reads
// slowly holds it for job.MaxBackupTime.
type backupWriter struct {
	x       *call
	timeout time.Duration
}

func (w *backupWriter) Write(b []byte) (int, error) {
	x := w.x
	if !x.sent {
		x.sent = true
		h := x.w.Header()
		h.Set("Content-Type", backupType)
		h.Set("Cache-Control", "no-store")
		x.nameLeader()
		x.w.WriteHeader(http.StatusOK)
		x.logManagement() // who gets all jobs, with their bodies, is on record from the beginning
	}
	httpx.AllowWrite(x.w, w.timeout)
	return x.w.Write(b)
}

// restore replaces the state of the cluster by the backup in the request's body. It reads that as
// it arrives. Who sends it is on record from the beginning.
func (s *server) restore(x *call) (r wire.Restored, err error) {
	o, err := restoreOptions(x)
	if err != nil {
		return r, err
	}
	if s.Draining() {
		return r, job.NotApplied("this node is stopping; use another")
	}
	s.Logger.Warn("a client sends a backup to replace the state", "from", x.r.RemoteAddr, "dry_run", o.DryRun)
	body := &restoreBody{x: x, timeout: s.Timeout, until: time.Now().Add(job.MaxBackupTime)}
	done, err := s.Operator.Restore(x.r.Context(), body, o)
	if err != nil {
		return r, err
	}
	return wire.Restored{
		DryRun: o.DryRun, Index: done.Index, BackupCluster: done.BackupCluster, BackupIndex: done.BackupIndex, BackupAt: wire.Time(done.BackupTime.UnixMilli()),
		Shift: wire.SecondsOf(done.Shift.Milliseconds()), Before: wire.RestoredCounts(done.Before), After: wire.RestoredCounts(done.After), Tokens: uint64(done.Tokens),
	}, nil
}

func restoreOptions(x *call) (o job.RestoreOptions, err error) {
	query := x.r.URL.Query()
	for name, to := range map[string]*bool{"from_now": &o.FromNow, "dry_run": &o.DryRun} {
		switch text := query.Get(name); text {
		case "true":
			*to = true
		case "", "false":
		default:
			return o, job.Invalid(name, "is %.40q; it takes true or false", text)
		}
	}
	switch text := query.Get("auth"); text {
	case "reset":
		o.ResetAuth = true
	case "", "keep":
	default:
		return o, job.Invalid("auth", "is %.40q; it takes keep or reset", text)
	}
	o.Cluster = query.Get("cluster")
	return o, nil
}

// restoreBody reads the request's body. Each read may take the time of a request, and all of
// them job.MaxBackupTime, so that a client that stops sending does not hold the only place.
type restoreBody struct {
	x       *call
	timeout time.Duration
	until   time.Time
}

func (b *restoreBody) Read(p []byte) (int, error) {
	now := time.Now()
	if now.After(b.until) {
		return 0, errors.New("the backup took more than 12 h to arrive")
	}
	httpx.AllowRead(b.x.w, now, b.timeout)
	n, err := b.x.r.Body.Read(p)
	if errors.Is(err, io.EOF) {
		// From here on the connection is only watched for a client that hangs up.
		_ = http.NewResponseController(b.x.w).SetReadDeadline(time.Time{})
	}
	return n, err
}

// scheduledBackups lists the backups that the cluster has made by itself.
func (s *server) scheduledBackups(x *call) (r wire.ScheduledBackups, err error) {
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	list := s.Operator.ScheduledBackups(ctx)
	r.Backups = each(list.Backups, func(b *report.ScheduledBackup) wire.ScheduledBackup {
		return wire.ScheduledBackup{
			Name: b.Name, Index: b.Index, PlannedAt: wire.Time(b.InstantMs), TakenAt: wire.Time(b.TakenMs), Bytes: uint64(b.Bytes), Base: b.Base,
			Verified: b.Problem == "", Problem: b.Problem, Nodes: b.Nodes,
		}
	})
	r.Nodes = each(list.Nodes, func(n *report.NodeBackups) wire.NodeBackups {
		return wire.NodeBackups{ID: n.Id, Scheduled: n.Scheduled, More: n.More, Error: n.Error}
	})
	return r, nil
}
