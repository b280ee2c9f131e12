package bench

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"tarry/internal/sleep"
)

// runDelayed adds jobs at a rate while consumers wait for them by long polls.
// Lateness is the time from a job's due instant to the moment its consumer has it.
func runDelayed(ctx context.Context, c Config, consume consumer) (*Result, error) {
	return runPaced(ctx, c, consume, func(w *worker) func() error {
		jobs := newJobText(c, w.number)
		var request []byte
		return func() error {
			request = jobs.append(request[:0], c.Delay.Seconds())
			_, err := w.call("POST", "/v1/jobs", request, callLimit)
			return err
		}
	})
}

// consumer handles jobs until ctx ends, of a run that began at begin.
type consumer func(ctx context.Context, w *worker, begin time.Time)

// consumers is how many there are beside as many producers as connections.
func (c *Config) consumers() int {
	if c.Scenario == Worker {
		return 1
	}
	return c.Connections
}

// runPaced lets some of the workers consume and the others produce a job at each
// instant of the pace, by what add returns.
func runPaced(ctx context.Context, c Config, consume consumer, add func(*worker) func() error) (*Result, error) {
	pace := &pacer{begin: time.Now(), gap: time.Duration(float64(time.Second) / c.Rate)}
	res, err := measure(ctx, c, c.consumers()+c.Connections, func(ctx context.Context, w *worker) {
		if w.number < c.consumers() {
			consume(ctx, w, pace.begin)
		} else {
			produce(ctx, w, pace, add(w))
		}
	})
	if err != nil {
		return nil, err
	}
	// A turn of a consumer is mostly waiting, so its length says nothing.
	res.Latency = Summary{}
	return res, nil
}

// pacer gives out instants at a fixed rate, whoever asks.
type pacer struct {
	begin time.Time
	gap   time.Duration
	next  atomic.Int64
}

// wait blocks until the next instant is there, or ctx ends.
func (p *pacer) wait(ctx context.Context) bool {
	_, ok := p.instant(ctx)
	return ok
}

// instant is wait that also returns the instant.
func (p *pacer) instant(ctx context.Context) (at time.Time, ok bool) {
	at = p.begin.Add(time.Duration(p.next.Add(1)) * p.gap)
	return at, sleep.For(ctx, time.Until(at))
}

func produce(ctx context.Context, w *worker, pace *pacer, add func() error) {
	defer w.close()
	for pace.wait(ctx) {
		if err := add(); err != nil && w.run.phase.Load() == measuring {
			w.failures++
			w.last = fmt.Errorf("add: %w", err)
			sleep.For(ctx, failurePause)
		}
	}
}

// topics lists all topics, as between the outer quotes of a JSON list.
func (w *worker) topics() string {
	var all []string
	for i := range w.run.config.Topics {
		all = append(all, topic(i))
	}
	return strings.Join(all, `","`)
}

// maxPerReserve is how many jobs a consumer takes at most: as many as one tick of
// the rate may bring, not the whole queue.
const maxPerReserve = 10

// consume reserves some jobs and finishes them in another request.
func consume(ctx context.Context, w *worker, _ time.Time) {
	reserve := fmt.Appendf(nil, `{"topics":["%s"],"max":%d,"wait":10}`, w.topics(), maxPerReserve)
	var finish []byte
	w.loop(ctx, func() (int, error) {
		answer, err := w.call("POST", "/v1/reserve", reserve, callLimit)
		if err != nil {
			return 0, fmt.Errorf("reserve: %w", err)
		}
		now := time.Now()
		measured := w.run.phase.Load() == measuring
		finish = append(finish[:0], `{"jobs":[`...)
		n := 0
		// Each job begins with its id; the head of the answer holds none.
		for _, part := range bytes.Split(answer, []byte(`{"id":`))[1:] {
			due, err := time.Parse(time.RFC3339, text(part, "due_at"))
			if err != nil {
				return 0, fmt.Errorf("due instant of a job: %w", err)
			}
			if measured {
				w.lateness.Record(now.Sub(due))
			}
			if n++; n > 1 {
				finish = append(finish, ',')
			}
			finish = append(append(append(finish, `{"token":"`...), text(part, "token")...), `"}`...)
		}
		if n == 0 {
			return 0, nil
		}
		if _, err := w.call("POST", "/v1/finish", append(finish, "]}"...), callLimit); err != nil {
			return 0, fmt.Errorf("finish: %w", err)
		}
		return n, nil
	})
}

// consumeOneByOne finishes the job that it holds in the request that reserves the next one, as
// the workers of the clients do.
func consumeOneByOne(ctx context.Context, w *worker, _ time.Time) {
	topics := w.topics()
	var request []byte
	held := ""
	w.loop(ctx, func() (int, error) {
		request = fmt.Appendf(request[:0], `{"topics":["%s"],"max":1,"wait":10`, topics)
		if held != "" {
			request = fmt.Appendf(request, `,"finish":[{"token":"%s"}]`, held)
		}
		answer, err := w.call("POST", "/v1/reserve", append(request, '}'), callLimit)
		if err != nil {
			return 0, fmt.Errorf("reserve: %w", err)
		}
		now := time.Now()
		if held = text(answer, "token"); held == "" {
			return 0, nil
		}
		due, err := time.Parse(time.RFC3339, text(answer, "due_at"))
		if err != nil {
			return 0, fmt.Errorf("due instant of a job: %w", err)
		}
		if w.run.phase.Load() == measuring {
			w.lateness.Record(now.Sub(due))
		}
		return 1, nil
	})
}
