package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tarry/api/access"
	"tarry/auth"
	"tarry/internal/addrlimit"
	"tarry/job"
	"tarry/job/jobpb"
)

const (
	// maxStreams bounds the streams of a node, maxStreamCredit the sum of their credits.
	// Each credit is a reservation that the node watches.
	maxStreams      = 10_000
	maxStreamCredit = 100_000

	// maxStreamBytes bounds the bodies of the jobs that a stream reserves at once, except
	// for a single larger one.
	maxStreamBytes = 1 << 20

	// streamChunk is the approximate size of one write of a stream. If the connection
	// breaks, the jobs before it were delivered; the jobs in it and after it were not.
	streamChunk = 64 << 10

	// streamPause is how long a stream waits if there is no leader, or no free memory.
	streamPause = time.Second
)

// streamRoom counts the streams of a node and their credits.
type streamRoom struct{ streams, credit *addrlimit.Limit }

func newStreamRoom() streamRoom {
	return streamRoom{addrlimit.New(maxStreams, maxStreams), addrlimit.New(maxStreamCredit, maxStreamCredit)}
}

// publish registers metrics of the streams and their credits.
func (r *streamRoom) publish(registry prometheus.Registerer) {
	if registry == nil {
		return
	}
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tarry_streams", Help: "Streams of jobs that are open.",
		}, func() float64 { return float64(r.streams.Held()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tarry_stream_credit", Help: "Jobs that the open streams may hold unfinished, together.",
		}, func() float64 { return float64(r.credit.Held()) }))
}

// stream is one long response with jobs as they become ready, within the credit. One
// goroutine serves it and waits either for jobs or for credit.
type stream struct {
	*call
	streamOptions
	watch job.Watch
	// held are the reservations that were sent to the client and have not ended, as far as
	// this node knows.
	held   map[job.Token]struct{}
	refill *refill
	buffer []byte    // the output before it is sent
	given  int64     // jobs
	last   time.Time // of the last write
	broken bool      // a write failed
}

func (s *server) stream(x *call) error {
	o, err := streamOptionsOf(x)
	if err != nil {
		return err
	}
	if s.Draining() {
		return job.NotApplied("this node is stopping; use another")
	}
	if err := s.Access.AllowOn(x.r.Context(), auth.Consume, o.topics); err != nil {
		return err
	}
	place, err := s.Access.Wait(x.r.Context())
	if err != nil {
		return err
	}
	defer place.End()
	streams, credit := s.streams.streams.Of(""), s.streams.credit.Of("")
	if !streams.TryAcquire(1) {
		return job.Errorf(job.CodeOverloaded, "this node has the maximum of %d streams; use another node", maxStreams)
	}
	defer streams.Release(1)
	if !credit.TryAcquire(o.credit) {
		return job.Errorf(job.CodeOverloaded, "the streams of this node have the maximum credit of %d; use another node", maxStreamCredit)
	}
	defer credit.Release(o.credit)
	t := &stream{call: x, streamOptions: o, watch: s.Queue.Watch(), held: map[job.Token]struct{}{}}
	defer t.watch.Close()
	next := t.reserve(1)
	next.Principal = auth.FromContext(x.r.Context()).Encode() // whoever finishes a job reserves it for the stream
	t.refill = s.refills.add(next)
	ctx, stop := s.Access.WhileAllowed(x.r.Context(), auth.Consume, o.topics)
	defer stop()
	err = t.begin()
	for err == nil {
		err = t.step(ctx)
	}
	if job.CodeOf(err) != job.CodeForbidden && access.Revoked(ctx) {
		err = access.NotAnyMore()
	}
	t.end(err)
	return nil
}

// begin sends the head of the response, which shows the client that the stream is
// accepted.
func (t *stream) begin() error {
	t.sent = true
	h := t.w.Header()
	h.Set("Content-Type", t.format.contentType())
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies must not hold lines back
	t.nameLeader()
	t.w.WriteHeader(http.StatusOK)
	return t.event("open", func(w *writer) {
		w.number("credit", uint64(t.credit))
		w.seconds("heartbeat", t.heartbeat.Milliseconds())
	})
}

// streamEnd is the error that ends a stream normally, with the reason for the client.
type streamEnd string

func (g streamEnd) Error() string { return string(g) }

// step waits for one event and handles it. An error ends the stream.
func (t *stream) step(ctx context.Context) error {
	t.takeEnded()
	jobs, free := t.refill.take(t.credit-int64(len(t.held)), t.max-t.given)
	if len(jobs) > 0 {
		return t.hand(ctx, jobs)
	}
	silent := t.heartbeat - time.Since(t.last)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case t.s.Draining():
		return streamEnd("this node stops; use another")
	case t.given == t.max:
		return streamEnd("max reached")
	case silent <= 0:
		return t.beat()
	case free == 0:
		return t.pause(ctx, silent)
	}
	jobs, err := t.s.Queue.Reserve(ctx, t.reserve(free), silent)
	switch {
	case len(jobs) > 0:
		return t.hand(ctx, jobs)
	case err == nil || ctx.Err() != nil:
		return ctx.Err()
	case outcomes[job.CodeOf(err)] != "":
		return t.pause(ctx, min(silent, streamPause)) // for example while there is no leader
	}
	return err
}

// reserve returns a Reserve of the stream's jobs.
func (t *stream) reserve(most int64) *jobpb.Reserve {
	return &jobpb.Reserve{Topics: t.topics, Max: uint32(most), TtrMs: t.ttrMS, MaxBytes: maxStreamBytes, Consumer: t.consumer}
}

// takeEnded forgets the reservations that have ended.
func (t *stream) takeEnded() {
	for _, ended := range t.watch.Take() {
		delete(t.held, ended)
		t.refill.drop(ended)
	}
}

// pause waits for d, or until a reservation ends, a finish has reserved a job, or the node
// drains.
func (t *stream) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.watch.Wake():
	case <-t.refill.wake:
	case <-t.s.Drained():
	case <-ctx.Done():
	}
	return nil
}

// hand sends jobs to the client. It releases at once those that the client did not get.
func (t *stream) hand(ctx context.Context, jobs []*jobpb.Reserved) error {
	if ctx.Err() != nil {
		t.s.giveBack(t.call, jobs)
		return ctx.Err()
	}
	room := answerBytes(jobs)
	if t.claim(room) != nil {
		t.s.giveBack(t.call, jobs)
		return t.pause(ctx, streamPause)
	}
	defer t.unclaim(room)
	tokens := make([]job.Token, len(jobs))
	for i, j := range jobs {
		tokens[i] = job.TokenOf(j)
	}
	err := t.watch.Add(tokens)
	for len(jobs) > 0 && err == nil {
		n := t.encode(jobs)
		if err = t.flush(); err == nil {
			for _, k := range tokens[:n] {
				t.held[k] = struct{}{}
			}
			t.refill.hold(tokens[:n])
			t.given += int64(n)
			jobs, tokens = jobs[n:], tokens[n:]
		}
	}
	if len(jobs) > 0 {
		t.s.giveBack(t.call, jobs)
	}
	return err
}

// encode appends jobs to the output until it is full, and returns how many.
func (t *stream) encode(jobs []*jobpb.Reserved) (n int) {
	for n < len(jobs) && len(t.buffer) < streamChunk {
		j := jobs[n]
		t.line("job", func(w *writer) { w.reserved(j) })
		n++
	}
	return n
}

// end sends the last event if the client is connected, and releases the held jobs if
// the client asked for that. After a normal end the client keeps its jobs.
func (t *stream) end(err error) {
	if jobs := t.refill.close(t.held); len(jobs) > 0 {
		t.s.giveBack(t.call, jobs)
	}
	var bye streamEnd
	switch e := asError(err); {
	case t.broken || t.r.Context().Err() != nil:
	case errors.As(err, &bye):
		_ = t.event("bye", func(w *writer) { w.text("reason", string(bye)) })
		return
	default:
		if e.Code != job.CodeForbidden {
			t.s.Logger.Error("a stream failed", "error", err)
		}
		_ = t.event("error", func(w *writer) { w.failure(e) })
	}
	t.takeEnded()
	if t.release && len(t.held) > 0 {
		t.giveUp()
	}
}

// giveUp releases the jobs that the client of an ended connection holds.
func (t *stream) giveUp() {
	var ops []*jobpb.Op
	for k := range t.held {
		ops = append(ops, &jobpb.Op{Kind: &jobpb.Op_Release{Release: &jobpb.Release{
			Ref: &jobpb.Ref{Seq: k.Seq, Generation: k.Generation}, Returned: true,
		}}})
	}
	if err := t.s.doItself(t.call, ops); err != nil {
		t.s.Logger.Warn("jobs of a stream that ended could not be given back; they are ready again when their leases expire",
			"jobs", len(ops), "error", err)
	}
}
