package cluster

import (
	"log/slog"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"
)

// shardConfig has the settings of a Shard.
type shardConfig struct {
	Timing
	Number   uint32
	ServerID string // Raft id of this node
	NodeID   string
	Dir      string
	Cache    int64
	Tables   int // of the state that are open at a time
	Logger   *slog.Logger
	// MetricsTopics is how many topics have metrics of their own.
	MetricsTopics int
	Registry      prometheus.Registerer // gets the shard's metrics, each with the label shard
	Host          Host
	// SentPart is called after each part of a state that was sent; nil: not called. For tests.
	SentPart       func()
	MaxClockOffset time.Duration
	LogStore       string // a logstore.Kind

	wrapLog func(raft.LogStore) raft.LogStore // see Config
	files   files
}
