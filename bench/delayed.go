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

// runDelayed adds jobs at a rate while consumers wait for them by long polls. A
// turn of a consumer is one reserve with its finish; lateness is the time from a
// job's due instant to the moment its consumer has it.
func runDelayed(ctx context.Context, c Config) (*Result, error) {
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

// runPaced lets half of the workers consume and half of them produce a job at each
// instant of the pace, by what add returns.
func runPaced(ctx context.Context, c Config, consume func(context.Context, *worker, time.Time), add func(*worker) func() error) (*Result, error) {
	pace := &pacer{begin: time.Now(), gap: time.Duration(float64(time.Second) / c.Rate)}
	res, err := measure(ctx, c, 2*c.Connections, func(ctx context.Context, w *worker) {
		if w.number < c.Connections {
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
	at := p.begin.Add(time.Duration(p.next.Add(1)) * p.gap)
	return sleep.For(ctx, time.Until(at))
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

// maxPerReserve is how many jobs a consumer takes at most: as many as one tick of
// the rate may bring, not the whole queue.
const maxPerReserve = 10

func consume(ctx context.Context, w *worker, _ time.Time) {
	var topics []string
	for i := range w.run.config.Topics {
		topics = append(topics, topic(i))
	}
	reserve := fmt.Appendf(nil, `{"topics":["%s"],"max":%d,"wait":10}`, strings.Join(topics, `","`), maxPerReserve)
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
