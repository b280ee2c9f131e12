package bench

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"tarry/internal/sleep"
)

// consumeStream takes jobs one at a time from a stream, and passes each to a finisher when it
// is done with it. So the next job is there while the last one is finished.
func consumeStream(ctx context.Context, w *worker, _ time.Time) {
	f := &finisher{conn: newConn(ctx, w.addr, w.access), run: w.run, wake: make(chan struct{}, 1)}
	var finishing sync.WaitGroup
	finishing.Go(func() { f.loop(ctx) })
	request := fmt.Appendf(nil, `{"topics":["%s"],"credit":%d}`, w.topics(), w.run.config.Credit)
	for ctx.Err() == nil {
		err := w.stream("POST", "/v1/stream", request, func(line []byte) error {
			now := time.Now()
			token := text(line, "token")
			if token == "" {
				return nil // no job
			}
			due, err := time.Parse(time.RFC3339, text(line, "due_at"))
			if err != nil {
				return fmt.Errorf("due instant of a job: %w", err)
			}
			if w.run.phase.Load() == measuring {
				w.lateness.Record(now.Sub(due))
			}
			f.add(token)
			return nil
		})
		if w.run.phase.Load() == measuring {
			w.failures++
			w.last = fmt.Errorf("stream: %w", err)
			sleep.For(ctx, failurePause)
		}
	}
	finishing.Wait()
	w.jobs += f.jobs
	if f.last != nil {
		w.failures += f.failures
		w.last = f.last
	}
}

// finisher finishes what has come while its last call was under way in one call.
type finisher struct {
	*conn
	run  *run
	wake chan struct{}

	mu     sync.Mutex
	tokens []string

	jobs, failures int64
	last           error
}

func (f *finisher) add(token string) {
	f.mu.Lock()
	f.tokens = append(f.tokens, token)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// take returns what waits, at most as much as a call may have.
func (f *finisher) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := min(len(f.tokens), 1000)
	taken := f.tokens[:n:n]
	f.tokens = f.tokens[n:]
	return taken
}

func (f *finisher) loop(ctx context.Context) {
	defer f.close()
	for ctx.Err() == nil {
		tokens := f.take()
		if len(tokens) == 0 {
			select {
			case <-f.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		request := `{"jobs":[{"token":"` + strings.Join(tokens, `"},{"token":"`) + `"}]}`
		_, err := f.call("POST", "/v1/finish", []byte(request), callLimit)
		if err != nil && f.nc == nil { // no reply: the jobs may still hold the stream's credit
			for _, token := range tokens {
				f.add(token)
			}
			sleep.For(ctx, failurePause)
		}
		if f.run.phase.Load() != measuring {
			continue
		}
		if err != nil {
			f.failures++
			f.last = fmt.Errorf("finish: %w", err)
			continue
		}
		f.jobs += int64(len(tokens))
	}
}
