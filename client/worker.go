package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// Worker runs a function for each job of some topics. Set the fields before Run and do
// not change them afterwards.
type Worker struct {
	Client *Client
	Topics []string
	// Do works on a job. If it returns nil the job is finished. Otherwise the job is
	// released with the error as its reason, or buried if the error is Permanent. A panic and
	// runtime.Goexit end the job alone, as errors. ctx ends when the reservation is lost, after
	// Timeout and after Grace.
	Do func(ctx context.Context, j Reserved) error
	// Concurrency is how many jobs are worked on at once; 0 means 1.
	Concurrency int
	// TTR is how long reservations last; 0: each job's own. While Do runs, the worker
	// extends the reservation. So TTR is only how long a job waits after its worker was
	// killed, and may be short.
	TTR time.Duration
	// Timeout is how long Do may work on a job; 0: without end. Then its ctx ends with the cause
	// ErrTimeout, and the reservation is extended no more: if Do returns an error the job is
	// released, and if it does not return the job comes back when the reservation expires.
	Timeout time.Duration
	// Consumer names the worker, in up to 64 bytes.
	Consumer string
	// Backoff is how long a failed job waits; nil: by the job's or its topic's backoff.
	// Jitter does not apply.
	Backoff *Backoff
	// Grace is how long functions may continue after Run's context has ended; 0 means 30 s.
	Grace time.Duration
	// OnError is called with a *JobError when Do fails, with failures of calls to the cluster, and
	// each 6 s while no node can be reached. The worker continues.
	// It may be called by several goroutines at once. nil: failures are logged with slog.Warn.
	OnError func(error)
}

const (
	workerWait  = 30 * time.Second // one wait for jobs
	workerPause = time.Second      // after a wait that failed
	workerSoon  = 5 * time.Second  // after which OnError learns that no node replies: longer than a failover
	// nextWait is how long a finish waits for the next job. A worker that is nearly always busy so
	// makes one call a job, and its next reserve is committed beside the finish and not after it.
	// It is short because a place that waits here is not free for the loop in Run.
	nextWait     = shortWait
	defaultGrace = 30 * time.Second
	// touchesPerTTR leaves time for a touch that meets a change of leader.
	touchesPerTTR = 3
)

// ErrLost is the cause for which a function's ctx ends when its reservation has
// expired, so that another consumer may have the job.
var ErrLost = errors.New("the job's reservation is lost")

// ErrTimeout is the cause for which a function's ctx ends after Worker.Timeout.
var ErrTimeout = errors.New("timed out")

// errGoexit is the error of a function that called runtime.Goexit, as t.FailNow of a test does.
var errGoexit = errors.New("the function ended its goroutine")

// JobError is what Worker.OnError is called with when a function has failed.
type JobError struct {
	Job    Reserved
	Err    error
	Stack  []byte // of a panic
	Buried bool   // because Err is Permanent
}

// Error implements error. It has the stack of a panic.
func (e *JobError) Error() string {
	what := ""
	if e.Buried {
		what = " is buried"
	}
	text := fmt.Sprintf("job %q%s: %v", e.Job.ID, what, e.Err)
	if e.Stack != nil {
		text += "\n" + string(e.Stack)
	}
	return text
}

// Unwrap returns the error of the function.
func (e *JobError) Unwrap() error { return e.Err }

// Permanent marks an error of Worker.Do that another attempt would have too: the job is
// buried.
func Permanent(err error) error { return &permanentError{err} }

type permanentError struct{ err error }

func (p *permanentError) Error() string { return p.err.Error() }
func (p *permanentError) Unwrap() error { return p.err }

// Run works until ctx ends; signal.NotifyContext returns one that ends with SIGTERM. Then it
// reserves no more jobs, waits up to Grace for the functions that run, and finishes or
// releases their jobs. It returns an error only if the worker cannot start.
func (w *Worker) Run(ctx context.Context) error {
	if w.Client == nil || w.Do == nil || len(w.Topics) == 0 {
		return errors.New("a worker needs a client, topics and a function")
	}
	// Functions outlive ctx by the grace.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() {
		sleep(work, w.grace())
		stop()
	})()

	slots := make(chan struct{}, max(w.Concurrency, 1))
	var running sync.WaitGroup
	defer running.Wait()
	for {
		free := takeSlots(ctx, slots)
		if free == 0 {
			return nil
		}
		jobs, _, err := w.Client.reserve(ctx, nil, ReserveOptions{Topics: w.Topics, Max: free, Wait: workerWait, TTR: w.TTR, Consumer: w.Consumer}, workerSoon)
		for range free - len(jobs) {
			<-slots
		}
		for i := range jobs {
			running.Go(func() {
				defer func() { <-slots }()
				for j := &jobs[i]; j != nil; {
					j = w.work(ctx, work, j)
				}
			})
		}
		if err != nil && ctx.Err() == nil {
			w.failed("reserve", err)
			sleep(ctx, workerPause)
		}
	}
}

func (w *Worker) grace() time.Duration {
	if w.Grace == 0 {
		return defaultGrace
	}
	return w.Grace
}

// takeSlots waits for a free slot and takes all that are free; 0: ctx has ended.
func takeSlots(ctx context.Context, slots chan struct{}) int {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	for taken := 1; ; taken++ {
		select {
		case slots <- struct{}{}:
			continue
		default:
		}
		if ctx.Err() != nil {
			return 0
		}
		return taken
	}
}

// work runs the function for one job and does to the job what its result says. It returns
// another job that it has reserved, if one came soon and taking has not ended.
func (w *Worker) work(taking, ctx context.Context, j *Reserved) (next *Reserved) {
	held, lose := context.WithCancelCause(ctx)
	if w.Timeout > 0 {
		defer time.AfterFunc(w.Timeout, func() { lose(ErrTimeout) }).Stop()
	}
	var beats sync.WaitGroup
	beats.Go(func() { w.heartbeat(held, lose, j) })
	stack, failure := w.call(held, j)
	cause := context.Cause(held)
	lose(nil)
	beats.Wait()

	var permanent *permanentError
	buried := errors.As(failure, &permanent)
	if failure != nil && cause == ErrTimeout && !buried {
		failure = fmt.Errorf("%w after %g s", ErrTimeout, w.Timeout.Seconds())
	}
	if failure != nil && cause != ErrLost {
		w.report(&JobError{Job: *j, Err: failure, Stack: stack, Buried: buried})
	}
	// What is left to say must be said also when the grace is over.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), j.TTR.Duration+w.Client.patience)
	defer cancel()
	switch {
	case cause == ErrLost:
		w.failed("work on", fmt.Errorf("job %q: %w", j.ID, ErrLost))
	case failure == nil && taking.Err() == nil:
		return w.finishAndReserve(ctx, j)
	case failure == nil:
		if err := w.Client.Finish(ctx, j.Ref()); err != nil {
			w.failed("finish", err)
		}
	case buried:
		if _, err := w.Client.Bury(ctx, j.Ref(), BuryOptions{Reason: reason(failure)}); err != nil {
			w.failed("bury", err)
		}
	default:
		r := ReleaseOptions{Reason: reason(failure)}
		if w.Backoff != nil {
			r.Delay = w.Backoff.after(j.Attempts)
			r.AtOnce = r.Delay == 0
		}
		if _, err := w.Client.Release(ctx, j.Ref(), r); err != nil {
			w.failed("release", err)
		}
	}
	return nil
}

// finishAndReserve finishes a job and takes the next one in its place. It waits for one only for
// nextWait: longer waits are left to the loop in Run, which waits for all free places.
func (w *Worker) finishAndReserve(ctx context.Context, j *Reserved) (next *Reserved) {
	jobs, finished, err := w.Client.FinishAndReserve(ctx, []Ref{j.Ref()}, ReserveOptions{Topics: w.Topics, Wait: nextWait, TTR: w.TTR, Consumer: w.Consumer})
	if err == nil {
		err = finished[0]
	}
	if err != nil {
		w.failed("finish", err)
	}
	if len(jobs) == 0 {
		return nil
	}
	return &jobs[0]
}

// call runs the function on a goroutine of its own. A panic is a failure of this job alone, and so
// is the end of the goroutine.
func (w *Worker) call(ctx context.Context, j *Reserved) (stack []byte, err error) {
	done := make(chan struct{})
	err = errGoexit
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				err, stack = fmt.Errorf("panic: %v", p), debug.Stack()
			}
		}()
		err = w.Do(ctx, *j)
	}()
	<-done
	return stack, err
}

// heartbeat prolongs a reservation until ctx ends, or the reservation is lost.
func (w *Worker) heartbeat(ctx context.Context, lose context.CancelCauseFunc, j *Reserved) {
	for sleep(ctx, j.TTR.Duration/touchesPerTTR) {
		_, err := w.Client.Touch(ctx, j.Ref(), j.TTR.Duration)
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, CodeStaleToken), errors.Is(err, CodeNotFound), errors.Is(err, CodeNotReserved):
			lose(ErrLost)
		default:
			w.failed("touch", err)
		}
	}
}

func (w *Worker) failed(what string, err error) { w.report(fmt.Errorf("%s: %w", what, err)) }

func (w *Worker) report(err error) {
	if w.OnError == nil {
		slog.Warn("tarry: a worker goes on after a failure", "err", err)
		return
	}
	w.OnError(err)
}

// maxReason is what the server keeps of a reason, in bytes.
const maxReason = 1000

func reason(err error) string {
	text := err.Error()
	if len(text) > maxReason {
		text = text[:maxReason]
	}
	return strings.ToValidUTF8(text, "")
}

// after is how long a job waits after so many attempts.
func (b *Backoff) after(attempts uint32) time.Duration {
	n := int(max(attempts, 1)) - 1
	if len(b.Delays) > 0 {
		return b.Delays[min(n, len(b.Delays)-1)].Duration
	}
	factor, limit := b.Factor, b.Max.Duration
	if factor == 0 {
		factor = 2
	}
	if limit == 0 {
		limit = time.Hour
	}
	wait := min(float64(b.Base.Duration)*math.Pow(factor, float64(n)), float64(limit))
	return time.Duration(wait).Round(time.Millisecond)
}
