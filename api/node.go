package api

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"tarry/api/wire"
	"tarry/auth"
	"tarry/job"
)

// events responds with what this node has seen happen to the cluster.
func (s *server) events(x *call) error {
	from := uint64(0)
	if text := x.r.URL.Query().Get("from"); text != "" {
		var err error
		if from, err = strconv.ParseUint(text, 10, 64); err != nil {
			return job.Invalid("from", "is %.40q; it takes the number of an event", text)
		}
	}
	x.json.success()
	x.json.text("node", s.About.ID)
	x.json.timestamp("started_at", s.About.StartedMS())
	objects(&x.json, "events", s.Operator.Events(max(from, 1)-1), func(e job.ClusterEvent) {
		x.json.number("number", e.Number)
		x.json.timestamp("at", e.At.UnixMilli())
		x.json.text("kind", e.Kind)
		x.json.text("level", e.Level)
		x.json.text("event", e.Text)
		x.json.beginNamedObject("details")
		seen := map[string]bool{}
		for _, d := range e.Details {
			if !seen[d.Name] {
				seen[d.Name] = true
				x.json.quoted(d.Name, d.Value)
			}
		}
		x.json.endObject()
	})
	x.json.endObject()
	return nil
}

// about responds with this node's build and settings.
func (s *server) about(*call) (wire.Node, error) {
	a := &s.About
	settings := each(a.Settings, func(v job.NodeSetting) wire.NodeSetting {
		if v.Name == "log-level" { // it may have changed since the start
			v.Value = strings.ToLower(s.LogLevel.Level().String())
		}
		return wire.NodeSetting{Name: v.Name, Value: v.Value, Hidden: v.Hidden}
	})
	return wire.Node{
		ID: a.ID, Release: a.Release, Revision: a.Revision, Go: a.Go, Platform: a.Platform, StartedAt: wire.Time(a.StartedMS()), Draining: s.Draining(),
		StoreFormat: uint64(a.StoreFormat), WireVersion: uint64(a.WireVersion), BackupFormat: uint64(a.BackupFormat),
		MinClusterVersion: uint64(a.Runs.Min), MaxClusterVersion: uint64(a.Runs.Max), Settings: settings,
	}, nil
}

// nodeLog responds with the last lines of this node's log.
func (s *server) nodeLog(x *call) error {
	var lines []string
	if s.RecentLog != nil {
		lines = s.RecentLog()
	}
	size := 0
	for _, line := range lines {
		size += len(line)
	}
	if err := x.claim(int64(size)); err != nil {
		return err
	}
	x.json.success()
	x.json.text("node", s.About.ID)
	x.json.texts("lines", lines)
	x.json.endObject()
	return nil
}

// putLogLevel sets the lowest level that this node logs, until somebody sets another or it restarts.
func (s *server) putLogLevel(_ *call, q *wire.LogLevelRequest) (r wire.LogLevel, err error) {
	if !q.Level.Set {
		return r, job.Invalid("level", "is missing; it takes one of: %s", strings.Join(wire.LogLevels, ", "))
	}
	if _, err := wire.WordOf("level", q.Level, wire.LogLevels); err != nil {
		return r, err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(q.Level.V)); err != nil {
		return r, err
	}
	s.LogLevel.Set(level)
	return wire.LogLevel{Node: s.About.ID, Level: q.Level.V}, nil
}

// drain drains this node, or ends its drain.
func drain(drained bool) func(*server, *call) error {
	return func(s *server, x *call) error {
		return s.operate(x, func(ctx context.Context) error { return s.Operator.SetDrained(ctx, drained) })
	}
}

// livez succeeds while the process serves requests. It does not depend on a leader:
// restarting a node without one would not help.
func (s *server) livez(*call) (wire.Done, error) { return wire.Done{}, nil }

// readyz reports whether this node should get requests.
func (s *server) readyz(x *call) error {
	r := s.Operator.Readiness()
	details := s.shows(x, auth.Observe)
	if r.Ready && s.Draining() {
		r.Ready = false
		r.Reasons = append([]string{"the node is draining before it stops"}, r.Reasons...)
	}
	if r.Ready && !s.Access.IsReady() {
		r.Ready = false
		r.Reasons = append(r.Reasons, "the node has not caught up with the leader since it started")
	}
	x.json.beginObject()
	x.json.boolean("success", r.Ready)
	if !r.Ready {
		x.status = http.StatusServiceUnavailable
		x.w.Header().Set("Retry-After", "1")
		x.json.text("code", string(codeNotReady))
		if !details {
			r.Reasons = nil
		}
		x.json.text("error", firstReason(r.Reasons))
	}
	if !details { // whoever may reach the port
		r.Reasons, r.Warnings, r.Leader = nil, nil, ""
	}
	x.json.boolean("ready", r.Ready)
	x.json.texts("reasons", r.Reasons)
	x.json.texts("warnings", r.Warnings)
	x.json.text("leader", r.Leader)
	x.json.endObject()
	return nil
}

func firstReason(reasons []string) string {
	if len(reasons) == 0 {
		return "the node is not ready"
	}
	return reasons[0]
}
