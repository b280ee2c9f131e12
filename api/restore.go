package api

import (
	"errors"
	"io"
	"net/http"
	"time"

	"tarry/api/httpx"
	"tarry/api/wire"
	"tarry/job"
)

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
