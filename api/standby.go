package api

import (
	"net/http"
	"strconv"

	"tarry/api/httpx"
	"tarry/api/wire"
	"tarry/cluster/report"
	"tarry/job"
	"tarry/job/jobpb"
)

// standby handles GET /v1/cluster/standby.
func (s *server) standby(x *call) error {
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	st, err := s.Operator.Standby(ctx)
	return x.replyStandby(st, err)
}

func (x *call) replyStandby(st *report.Standby, err error) error {
	if err != nil {
		return err
	}
	x.json.success()
	x.json.standby(st)
	x.json.endObject()
	return nil
}

// standby writes the fields of a standby, none but the mode if it never was one.
func (w *writer) standby(st *report.Standby) {
	w.text("mode", wire.StandbyModes[st.Mode])
	if st.Mode == jobpb.StandbyMode_STANDBY_NEVER {
		return
	}
	w.text("primary", st.Primary)
	w.number("index", st.Index)
	w.number("term", st.Term)
	w.number("primary_index", st.PrimaryIndex)
	w.number("lag_entries", st.LagEntries())
	if lag := st.LagSeconds(); lag >= 0 {
		w.float("lag_seconds", lag)
	}
	if st.LastContactMs != 0 {
		w.timestamp("last_contact_at", st.LastContactMs)
	}
	if st.CaughtUpMs != 0 {
		w.timestamp("caught_up_at", st.CaughtUpMs)
	}
	if st.PromotedMs != 0 {
		w.timestamp("promoted_at", st.PromotedMs)
	}
	w.boolean("connected", st.Connected)
	w.textUnlessEmpty("source", st.Source)
	w.textUnlessEmpty("problem", st.Problem)
	w.booleanIfTrue("reseed", st.Reseed)
}

// promoteStandby handles POST /v1/cluster/standby/promote. Its reply is what was known just
// before.
func (s *server) promoteStandby(x *call) error {
	var q wire.PromoteRequest
	if err := x.decodeOptional(maxSmallRequest, &q); err != nil {
		return err
	}
	ctx, cancel := x.timeout(s.OperatorTimeout)
	defer cancel()
	st, err := s.Operator.PromoteStandby(ctx, q.Force.V)
	return x.replyStandby(st, err)
}

// clusterLog handles GET /v1/cluster/log. Like a backup it has all bodies, and holds a place that
// others need, so no page of another origin may start it.
func (s *server) clusterLog(x *call) error {
	if x.foreignGet() {
		return s.crossOrigin(x)
	}
	o, err := logOptions(x)
	if err != nil {
		return err
	}
	if x.r.Method == http.MethodHead {
		return job.Errorf(codeMethod, "the log is not sent for a HEAD; use GET")
	}
	if s.Draining() {
		return job.NotApplied("this node is stopping; use another")
	}
	w := &logWriter{backupWriter{x: x, timeout: s.Timeout}}
	if err = s.Operator.Log(x.r.Context(), w, o); err != nil && x.sent {
		s.Logger.Debug("a stream of the log ended", "from", x.r.RemoteAddr, "error", err)
		panic(http.ErrAbortHandler)
	}
	return err
}

func logOptions(x *call) (o job.LogOptions, err error) {
	q := x.r.URL.Query()
	if o.ClusterID = q.Get("cluster"); o.ClusterID == "" || len(o.ClusterID) > maxClusterID {
		return o, job.Invalid("cluster", "is %.40q; it takes the id of the cluster whose log it is", o.ClusterID)
	}
	if o.After, err = positive("index", q.Get("index")); err == nil {
		o.Term, err = positive("term", q.Get("term"))
	}
	return o, err
}

func positive(name, text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n == 0 {
		return 0, job.Invalid(name, "is %.40q; it takes a whole number from 1", text)
	}
	return n, nil
}

// maxClusterID bounds the text of a cluster's id in a query.
const maxClusterID = 200

// logWriter sends a stream of the log as it comes.
type logWriter struct{ backupWriter }

// Flush implements job.LogWriter.
func (w *logWriter) Flush() error {
	httpx.AllowWrite(w.x.w, w.timeout)
	return httpx.Flush(w.x.w)
}

var _ job.LogWriter = (*logWriter)(nil)
