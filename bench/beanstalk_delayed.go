package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// dueDigits is the length of the due instant that the body of a delayed job
// begins with, in nanoseconds. The protocol tells consumers nothing of it.
const dueDigits = 19

// runTubeDelayed puts delayed jobs at a rate while consumers wait for them.
// Lateness counts from the moment the put was sent, plus the delay, so the way of
// the put is part of it, on every server alike.
func runTubeDelayed(ctx context.Context, c Config) (*Result, error) {
	return runPaced(ctx, c, consumeTubes, func(w *worker) func() error {
		t := ownTube(w)
		var head, put []byte
		return func() error {
			head = strconv.AppendInt(head[:0], time.Now().Add(c.Delay).UnixNano(), 10)
			put = appendPut(put[:0], int(c.Delay/time.Second), c.Size, head)
			return t.call(put, 1, inserted)
		}
	})
}

// consumeTubes deletes what it reserves. Jobs of an earlier run, which the same
// server may still hold, are deleted and not counted.
func consumeTubes(ctx context.Context, w *worker, begin time.Time) {
	t := allTubes(w)
	w.loop(ctx, func() (int, error) {
		body, ok, err := t.reserve(tubeWait)
		if err != nil {
			return 0, fmt.Errorf("reserve: %w", err)
		}
		if !ok {
			return 0, nil
		}
		now := time.Now()
		if len(body) < dueDigits {
			return 0, fmt.Errorf("due instant of a job: the body has %d bytes", len(body))
		}
		nanos, err := strconv.ParseInt(string(body[:dueDigits]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("due instant of a job: %w", err)
		}
		due := time.Unix(0, nanos)
		ours := !due.Before(begin.Add(w.run.config.Delay))
		if ours && w.run.phase.Load() == measuring {
			w.lateness.Record(now.Sub(due))
		}
		if err := t.delete(); err != nil {
			return 0, fmt.Errorf("delete: %w", err)
		}
		if !ours {
			return 0, nil
		}
		return 1, nil
	})
}
