package server

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"tarry/cluster"
	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/tracing"
	"tarry/job/jobpb"
)

// flushTime bounds the time to send the last spans. The node has stopped then, so a container
// engine that does not wait for it loses nothing but these.
const flushTime = 2 * time.Second

// traces makes the spans of a node, if there is a collector for them.
type traces struct{ tracer *tracing.Tracer }

func startTraces(ctx context.Context, cfg *Config, log *slog.Logger) (traces, error) {
	if !tracing.Wanted(cfg.OTLPEndpoint) {
		return traces{}, nil
	}
	t, err := tracing.New(ctx, tracing.Options{Endpoint: cfg.OTLPEndpoint, Sample: cfg.TraceSample, Node: cfg.NodeID, Version: cli.Version, Logger: log})
	if err != nil {
		return traces{}, err
	}
	log.Info("tracing", "endpoint", cfg.OTLPEndpoint)
	return traces{t}, nil
}

// queue returns the queue of a node, as clients and push use it. Without a collector it is
// the node's own.
func (t traces) queue(node *cluster.Node) tracing.Queue {
	if t.tracer == nil {
		return node.Queue()
	}
	node.Queue().ObserveTimeouts(t.tracer.Expired)
	return t.tracer.Queue(node.Queue())
}

// post returns what starts the span of a post; nil: there are no spans.
func (t traces) post() func(*jobpb.Reserved, string) (string, func(int, string)) {
	if t.tracer == nil {
		return nil
	}
	return t.tracer.Post
}

// publish registers the metrics.
func (t traces) publish(node *cluster.Node) {
	if t.tracer != nil {
		node.Metrics().MustRegister(t.tracer)
	}
}

func (t traces) close() {
	if t.tracer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	t.tracer.Close(ctx)
}

// parseSample reads the value of --trace-sample.
func parseSample(text string) (*float64, error) {
	share, err := strconv.ParseFloat(text, 64)
	if err != nil || !(share >= 0 && share <= 1) {
		return nil, errors.New("it must be a number from 0 to 1")
	}
	return &share, nil
}

func parseEndpoint(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	if err := tracing.CheckEndpoint(text); err != nil {
		return "", err
	}
	return text, nil
}
