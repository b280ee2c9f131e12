package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
	"tarry/internal/sleep"
)

const (
	// workWait is how long one reserve waits, workPause how long a worker rests while
	// no node can serve.
	workWait  = time.Minute
	workPause = time.Second
	// maxWorkers bounds --concurrency.
	maxWorkers = 1000
)

const workText = `Reserves jobs and runs a program for each: a worker in any language.

The program gets the body on standard input, and these in its environment: TARRY_ID,
TARRY_TOPIC, TARRY_TOKEN, TARRY_ATTEMPT, TARRY_PRIORITY, TARRY_DUE_AT, TARRY_TTR in
seconds, TARRY_HEADERS as a JSON object, and TARRY_ADDR. Arguments after -- are passed on.
While it runs, its reservation is prolonged, so that it may take longer than the ttr.

Its exit code decides what becomes of the job:
  0      it is finished
  75     it is released, and handed out again after --delay; the attempt counts
  other  the attempt has failed: it is released with the last line of the program's
         standard error as the reason. Its backoff says when it is handed out again
         (docs/retries.md); after its last attempt it is dead.

A program that has run for --timeout gets a SIGTERM, and 5 s later it is killed. Then it has failed,
with the reason "timed out after 60 s", unless its exit code is 0 or 75.

SIGTERM or Ctrl-C stops it: no more jobs are taken, and running programs have --grace to
end. After that, or at the second signal, they are stopped and their jobs released.`

// worker runs a program for each job.
type worker struct {
	t         *cli.Terminal
	reserve   client.ReserveOptions
	program   []string // and its arguments
	addr      string
	delay     time.Duration
	timeout   time.Duration // of a program; 0: none
	grace     time.Duration
	beat      time.Duration // between two signs of life; 0: a third of the ttr
	unlimited bool
	left      atomic.Int64 // jobs to take still, unless unlimited
	running   atomic.Int64
	told      atomic.Bool // that no node can serve
}

func WorkCommand() *cobra.Command {
	c := cli.NewCommand("work", "run a program for each job", "[TOPIC...] [flags] [-- ARGUMENT...]", workText,
		"tarry work mail --exec ./send.sh --concurrency 4", 0, 1000)
	var topics, ttr, timeout = new(list), &cli.Duration{Positive: true}, &cli.Duration{Positive: true}
	var delay, grace = &cli.Duration{Value: 10 * time.Second}, &cli.Duration{Value: 30 * time.Second}
	var program, consumer string
	var concurrency, most int
	c.Flags.VarP(topics, "topic", "t", "`name` of a topic to take from, instead of the arguments TOPIC; several: --topic a --topic b")
	c.Flags.StringVarP(&program, "exec", "e", "", "`program` to run for each job (required)")
	c.Flags.IntVarP(&concurrency, "concurrency", "c", 1, "`number` of programs at one time, 1 to 1000")
	c.Flags.IntVarP(&most, "max", "n", 0, "`number` of jobs to stop after; default: go on for ever")
	c.Flags.Var(ttr, "ttr", "`time` that a reservation lasts without a sign of life; default: each job's own")
	c.Flags.Var(timeout, "timeout", "`time` that a program may run for a job; default: without end")
	c.Flags.VarP(delay, "delay", "d", "`time` after which a job is handed out again whose program exited with 75")
	c.Flags.Var(grace, "grace", "`time` that running programs have to end when the worker is stopped")
	c.Flags.StringVar(&consumer, "consumer", "", "`name` of the consumer, shown with its jobs and kept in their history; default: the machine's name")
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		if len(topics.names) == 0 {
			own := len(args)
			if dash := c.Flags.ArgsLenAtDash(); dash >= 0 {
				own = dash
			}
			topics.names, args = args[:own], args[own:]
		}
		switch {
		case len(topics.names) == 0:
			return cli.Usagef("TOPIC is missing")
		case program == "":
			return cli.Usagef("--exec is missing")
		case concurrency < 1 || concurrency > maxWorkers:
			return cli.Usagef("--concurrency is %d; it takes 1 to %d", concurrency, maxWorkers)
		case most < 0:
			return cli.Usagef("--max is %d; it takes 1 or more", most)
		}
		if _, err := exec.LookPath(program); err != nil {
			return cli.Usagef("--exec: %w", err)
		}
		if consumer == "" {
			consumer, _ = os.Hostname()
			consumer = consumer[:min(len(consumer), maxConsumer)]
		}
		w := &worker{
			t: t, program: append([]string{program}, args...), addr: c.Addr, delay: delay.Value, timeout: timeout.Value, grace: grace.Value, unlimited: most == 0,
			reserve: client.ReserveOptions{Topics: topics.names, Max: 1, Wait: workWait, TTR: ttr.Value, Consumer: consumer},
		}
		w.left.Store(int64(most))
		return w.run(ctx, concurrency)
	})
}

// run works until it is stopped, or has had its number of jobs.
func (w *worker) run(ctx context.Context, concurrency int) error {
	stopping, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	programs, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		w.watch(stopping, ended, kill)
	}()
	group, taking := errgroup.WithContext(stopping)
	for range concurrency {
		group.Go(func() error { return w.loop(taking, programs) })
	}
	err := group.Wait()
	close(ended)
	<-watched
	return err
}

// watch stops the programs when they have had their grace.
func (w *worker) watch(stopping context.Context, ended <-chan struct{}, kill func()) {
	select {
	case <-ended:
		return
	case <-stopping.Done():
	}
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	if n := w.running.Load(); n > 0 {
		w.t.Notes.Line("stopping; programs that run: %d, which have up to %s", n, w.grace)
	}
	grace := time.NewTimer(w.grace)
	defer grace.Stop()
	select {
	case <-ended:
	case <-grace.C:
	case <-again:
	}
	kill()
}

// loop takes one job after the other. programs ends when they must.
func (w *worker) loop(taking, programs context.Context) error {
	var job *client.Reserved
	for {
		var err error
		if job == nil {
			if taking.Err() != nil || !w.claim() {
				return nil
			}
			if job, err = w.next(taking); err != nil || job == nil {
				return err
			}
		}
		w.running.Add(1)
		job, err = w.work(taking, programs, job)
		w.running.Add(-1)
		if err != nil {
			return err
		}
	}
}

// claim reports whether one more job may be taken, and counts it.
func (w *worker) claim() bool {
	for !w.unlimited {
		left := w.left.Load()
		if left <= 0 {
			return false
		}
		if w.left.CompareAndSwap(left, left-1) {
			break
		}
	}
	return true
}

// next waits for a job; nil: the worker stops. It goes on while no node can serve, and
// fails when one refuses the call.
func (w *worker) next(ctx context.Context) (*client.Reserved, error) {
	for {
		jobs, err := w.t.Client.Reserve(ctx, w.reserve)
		switch code := cli.ExitCode(err); {
		case len(jobs) > 0:
			w.serving()
			return &jobs[0], nil
		case ctx.Err() != nil:
			return nil, nil
		case err == nil:
			w.serving()
		case code != cli.ExitUnreachable && code != cli.ExitUnknown && !errors.Is(err, client.CodeOverloaded):
			return nil, err
		default:
			if !w.told.Swap(true) {
				w.t.Notes.Line("no job can be reserved: %s; going on", cli.Explain(err))
			}
			sleep.For(ctx, workPause)
		}
	}
}

// serving is called when a node has answered: the next failure is worth a note again.
func (w *worker) serving() {
	w.told.Store(false)
	w.t.Retries.Store(false)
}

// work runs the program for one job and reports what became of it. An error is the
// worker's end: the program cannot be started, and would fail for all jobs. It returns the next
// job, if one was ready when this one was finished.
func (w *worker) work(taking, programs context.Context, job *client.Reserved) (*client.Reserved, error) {
	ctx, cancel := context.WithCancelCause(programs)
	defer cancel(nil)
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		w.heartbeat(ctx, job, cancel)
	}()
	if w.timeout > 0 {
		defer time.AfterFunc(w.timeout, func() { cancel(client.ErrTimeout) }).Stop()
	}
	result := w.execute(ctx, job)
	lost := context.Cause(ctx)
	cancel(nil)
	<-beating
	if errors.Is(lost, errLost) {
		w.t.Notes.Line("%s: %v", job.ID, lost)
		return nil, nil
	}
	if lost == client.ErrTimeout && result.code != 0 && result.code != exitTryAgain {
		result = ran{code: -1, reason: fmt.Sprintf("%v after %g s", lost, w.timeout.Seconds())}
	}
	// Also when the worker stops: the report must reach a node.
	ctx = context.WithoutCancel(programs)
	var next *client.Reserved
	var err error
	if result.code == 0 && taking.Err() == nil && w.claim() {
		next, err = w.finishAndReserve(ctx, job)
	} else {
		err = w.report(ctx, job, result, programs.Err() != nil)
	}
	if err != nil {
		w.t.Notes.Line("%s: %s", job.ID, cli.Explain(err))
	}
	return next, result.notStarted
}

// finishAndReserve finishes a job and takes the next one, which is claimed. It does not wait
// for one.
func (w *worker) finishAndReserve(ctx context.Context, job *client.Reserved) (*client.Reserved, error) {
	reserve := w.reserve
	reserve.Wait = 0
	jobs, finished, err := w.t.Client.FinishAndReserve(ctx, []client.Ref{job.Ref()}, reserve)
	if err == nil {
		err = finished[0]
	}
	if len(jobs) == 0 {
		w.left.Add(1)
		return nil, err
	}
	return &jobs[0], err
}

// report tells the node what became of a job.
func (w *worker) report(ctx context.Context, job *client.Reserved, result ran, stopped bool) error {
	switch {
	case result.code == 0:
		return w.t.Client.Finish(ctx, job.Ref())
	case result.code == exitTryAgain:
		_, err := w.t.Client.Release(ctx, job.Ref(), client.ReleaseOptions{Delay: w.delay, AtOnce: w.delay == 0})
		return err
	case stopped:
		_, err := w.t.Client.Release(ctx, job.Ref(), client.ReleaseOptions{AtOnce: true, Reason: "its worker was stopped"})
		return err
	}
	w.t.Notes.Line("%s: attempt %d failed: %s", job.ID, job.Attempts, result.reason)
	_, err := w.t.Client.Release(ctx, job.Ref(), client.ReleaseOptions{Reason: result.reason})
	return err
}

// errLost is why a program is stopped whose job somebody else may have.
var errLost = errors.New("its reservation is lost, so its program was stopped")

// heartbeat prolongs a reservation, three times within its time, until ctx ends. When it
// is lost it ends ctx.
func (w *worker) heartbeat(ctx context.Context, job *client.Reserved, lost context.CancelCauseFunc) {
	beat := cmp.Or(w.beat, cmp.Or(w.reserve.TTR, job.TTR.Duration)/3, time.Millisecond)
	for sleep.For(ctx, beat) {
		_, err := w.t.Client.Touch(ctx, job.Ref(), w.reserve.TTR)
		if errors.Is(err, client.CodeNotFound) || errors.Is(err, client.CodeStaleToken) || errors.Is(err, client.CodeNotReserved) {
			lost(fmt.Errorf("%w: %s", errLost, cli.Explain(err)))
			return
		}
	}
}
