package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// loudShare is how many times its share the loud tenant takes.
const loudShare = 10

// tenant is one of the two of the scenario.
type tenant string

const (
	quiet tenant = "quiet"
	loud  tenant = "loud"
)

func (t tenant) topic() string { return "bench-" + string(t) + ".jobs" }

func (t tenant) path() string { return "/v1/namespaces/bench-" + string(t) }

// runTenants measures the cycles of one tenant, alone and then beside another that makes ten
// times as many over ten times as many connections. A cycle is late from the instant on at which
// it should have begun, so what waits for a connection counts.
func runTenants(ctx context.Context, c Config) (res *Result, err error) {
	admin := newConn(ctx, c.Addrs[0], c.access())
	defer admin.close()
	defer func() {
		// A context that has ended would leave them behind.
		last := newConn(context.WithoutCancel(ctx), c.Addrs[0], c.access())
		defer last.close()
		for _, t := range []tenant{quiet, loud} {
			_, derr := last.call("DELETE", t.path(), nil, callLimit)
			if status := new(statusError); errors.As(derr, &status) && status.status == 404 {
				derr = nil
			}
			err = errors.Join(err, derr)
		}
	}()
	for _, t := range []tenant{quiet, loud} {
		if _, err := admin.call("PUT", t.path(), fmt.Appendf(nil, `{"topic_prefix":"bench-%s."}`, t), callLimit); err != nil {
			return nil, fmt.Errorf("make the namespace of a tenant: %w", err)
		}
	}
	// In turns, so that whatever else the machine does meets both.
	part := c
	part.Duration, part.Warmup = c.Duration/tenantTurns, c.Warmup/tenantTurns
	var alone, beside Result
	for turn := range tenantTurns {
		if err := alone.addTenants(ctx, part, 0); err != nil {
			return nil, err
		}
		if err := beside.addTenants(ctx, part, loudShare*c.Connections); err != nil {
			return nil, err
		}
		c.Logger.Info("measured alone and beside the other tenant", "turn", turn+1, "of", tenantTurns)
	}
	res = &beside
	res.Scenario, res.Protocol = c.Scenario, c.Protocol
	res.Rate = float64(res.Jobs) / res.Seconds
	res.Latency = summarize(&beside.latencies)
	res.Alone = new(summarize(&alone.latencies))
	if res.Alone.P99 > 0 {
		res.Ratio = res.Latency.P99 / res.Alone.P99
	}
	return res, nil
}

// tenantTurns is how often the quiet tenant is measured alone, and beside the other one.
const tenantTurns = 4

// addTenants measures the quiet tenant while the loud one has so many connections, and adds that
// to the result.
func (r *Result) addTenants(ctx context.Context, c Config, louds int) error {
	part, err := measureTenants(ctx, c, louds)
	if err != nil {
		return err
	}
	r.latencies.Merge(&part.latencies)
	r.Jobs += part.Jobs
	r.Failures += part.Failures
	r.Seconds += part.Seconds
	r.GeneratorCPU += part.GeneratorCPU / tenantTurns
	r.NodeCPU += part.NodeCPU / tenantTurns
	return nil
}

// measureTenants measures the quiet tenant while the loud one has so many connections.
func measureTenants(ctx context.Context, c Config, louds int) (*Result, error) {
	begin := time.Now()
	paceOf := func(rate float64) *pacer {
		return &pacer{begin: begin, gap: time.Duration(float64(time.Second) / rate)}
	}
	quietPace, loudPace := paceOf(c.Rate), paceOf(loudShare*c.Rate)
	return measure(ctx, c, c.Connections+louds, func(ctx context.Context, w *worker) {
		defer w.close()
		if w.number < c.Connections {
			w.cycles(ctx, quiet, quietPace)
			return
		}
		// What the loud tenant does is load and no result.
		beside := &worker{conn: w.conn, run: w.run, number: w.number}
		beside.cycles(ctx, loud, loudPace)
	})
}

// cycles makes a cycle at each instant of a pace.
func (w *worker) cycles(ctx context.Context, t tenant, pace *pacer) {
	c := w.run.config
	add := fmt.Appendf(nil, `{"topic":"%s","body":"%s"}`, t.topic(), strings.Repeat("x", c.Size))
	for {
		at, ok := pace.instant(ctx)
		if !ok {
			return
		}
		err := w.cycle(t, add)
		switch {
		case w.run.phase.Load() != measuring:
		case err != nil:
			w.failures++
			w.last = err
		default:
			w.latency.Record(time.Since(at))
			w.jobs++
		}
	}
}

// cycle adds a job, and reserves and finishes one of the same tenant.
func (w *worker) cycle(t tenant, add []byte) error {
	if _, err := w.call("POST", "/v1/jobs", add, callLimit); err != nil {
		return fmt.Errorf("add: %w", err)
	}
	answer, err := w.call("POST", "/v1/reserve", fmt.Appendf(nil, `{"topics":["%s"],"max":1,"wait":10}`, t.topic()), callLimit)
	if err != nil {
		return fmt.Errorf("reserve: %w", err)
	}
	id, token := text(answer, "id"), text(answer, "token")
	if token == "" {
		return fmt.Errorf("no job of %s was handed out within 10 s", t.topic())
	}
	if _, err := w.call("POST", "/v1/jobs/"+id+"/finish", fmt.Appendf(nil, `{"token":"%s"}`, token), callLimit); err != nil {
		return fmt.Errorf("finish: %w", err)
	}
	return nil
}
