package api

import (
	"context"
	"log/slog"
	"strconv"
	"strings"

	"tarry/api/wire"
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
func (s *server) about(x *call) error {
	a := &s.About
	x.json.success()
	x.json.text("id", a.ID)
	x.json.text("release", a.Release)
	x.json.text("revision", a.Revision)
	x.json.text("go", a.Go)
	x.json.text("platform", a.Platform)
	x.json.timestamp("started_at", a.StartedMS())
	x.json.boolean("draining", s.Draining())
	x.json.number("store_format", uint64(a.StoreFormat))
	x.json.number("wire_version", uint64(a.WireVersion))
	x.json.number("backup_format", uint64(a.BackupFormat))
	x.json.number("min_cluster_version", uint64(a.Runs.Min))
	x.json.number("max_cluster_version", uint64(a.Runs.Max))
	objects(&x.json, "settings", a.Settings, func(v job.NodeSetting) {
		x.json.text("name", v.Name)
		if v.Name == "log-level" { // it may have changed since the start
			v.Value = strings.ToLower(s.LogLevel.Level().String())
		}
		x.json.text("value", v.Value)
		x.json.booleanIfTrue("hidden", v.Hidden)
	})
	x.json.endObject()
	return nil
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
func (s *server) putLogLevel(x *call) error {
	var q wire.LogLevelRequest
	if err := x.decode(maxSmallRequest, &q); err != nil {
		return err
	}
	if !q.Level.Set {
		return job.Invalid("level", "is missing; it takes one of: %s", strings.Join(wire.LogLevels, ", "))
	}
	if _, err := wire.WordOf("level", q.Level, wire.LogLevels); err != nil {
		return err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(q.Level.V)); err != nil {
		return err
	}
	s.LogLevel.Set(level)
	x.json.success()
	x.json.text("node", s.About.ID)
	x.json.text("level", q.Level.V)
	x.json.endObject()
	return nil
}

// drain drains this node, or ends its drain.
func drain(drained bool) func(*server, *call) error {
	return func(s *server, x *call) error {
		return s.operate(x, func(ctx context.Context) error { return s.Operator.SetDrained(ctx, drained) })
	}
}
