package standby

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"tarry/cluster/logstream"
	"tarry/cluster/report"
	"tarry/internal/sleep"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// Source is where the log of the primary comes from.
type Source interface {
	// Open opens a stream of its entries after the one that o names, in the format of package
	// logstream, and returns the node that sends it. It blocks until the node begins.
	Open(ctx context.Context, o job.LogOptions) (stream io.ReadCloser, node string, err error)
}

// Options connects a Follower to its node.
type Options struct {
	Source Source // nil: there is none
	// State returns what the state remembers of the primary; nil: it is not a standby.
	State func() *jobpb.StandbyState
	// Propose has a FollowLog committed, and blocks until it is applied here.
	Propose func(ctx context.Context, f *jobpb.FollowLog) error
	// Runs returns the highest cluster version that all members run.
	Runs   func() uint32
	Now    func() time.Time
	Logger *slog.Logger
}

const (
	// runBytes bounds the entries of one FollowLog, except a single larger one. ahead are the
	// frames that are read while one is under way.
	runBytes = 512 << 10
	ahead    = 16

	// silence is how long the primary may send nothing; it says how far it is twice a second.
	silence = 10 * time.Second
	// pause is between two attempts to reach the primary, longPause if nothing changes without
	// a person.
	pause     = time.Second
	longPause = 15 * time.Second
	// contactEvery is how often a contact without entries is recorded.
	contactEvery = 10 * time.Second
)

// Follower makes the state follow the primary's log.
type Follower struct {
	o        Options
	progress progress
}

// New returns a Follower that does nothing until Run.
func New(o Options) *Follower { return &Follower{o: o} }

// Run follows the primary until ctx ends or the standby is promoted. It runs on the leader. It
// blocks, and returns at once if the cluster is not a standby.
func (f *Follower) Run(ctx context.Context) {
	for ctx.Err() == nil && f.follows() {
		f.progress.begin(f.o.State())
		err := f.session(ctx)
		if ctx.Err() != nil || !f.follows() {
			break
		}
		wait := f.failed(err)
		sleep.For(ctx, wait)
	}
	f.progress.connected("")
}

func (f *Follower) follows() bool {
	return f.o.State().GetMode() == jobpb.StandbyMode_STANDBY_FOLLOWING
}

// needsPerson is an error that lasts until somebody acts. If reseed is set, the standby must be
// made again from a backup.
type needsPerson struct {
	error
	reseed bool
}

func (e needsPerson) Unwrap() error { return e.error }

// errNoSource is the error of a leader that was started without --follow.
var errNoSource = needsPerson{error: errors.New("this node, which leads, was started without --follow")}

// failed records and logs why a session ended, and returns the pause before the next one.
func (f *Follower) failed(err error) time.Duration {
	person, lasts := errors.AsType[needsPerson](err)
	if f.progress.failed(err.Error(), person.reseed) {
		f.o.Logger.Warn("the standby does not follow its primary", "error", err)
	}
	if lasts {
		return longPause
	}
	return pause
}

// session follows over one stream. It always returns an error.
func (f *Follower) session(ctx context.Context) error {
	if f.o.Source == nil {
		return errNoSource
	}
	s := f.o.State()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, node, err := f.o.Source.Open(ctx, job.LogOptions{ClusterID: s.Primary, After: s.Index, Term: s.Term})
	if err != nil {
		return openError(err)
	}
	f.progress.connected(node)
	f.o.Logger.Info("the standby follows its primary", "primary", node, "after", s.Index)
	frames, ended := make(chan logstream.Frame, ahead), make(chan error, 1)
	go func() {
		ended <- read(ctx, stream, frames)
		close(frames)
	}()
	err = f.follow(ctx, s, frames)
	cancel()
	closed := stream.Close() // ends the reader
	for range frames {       // until it has ended
	}
	if err == nil {
		if err = <-ended; errors.Is(err, io.EOF) {
			err = errors.New("the primary ended the stream of its log")
		}
	}
	return errors.Join(err, closed)
}

// openError returns what a refusal of the primary means.
func openError(err error) error {
	switch job.CodeOf(err) {
	case job.CodeLogTruncated, job.CodeConflict:
		return needsPerson{error: fmt.Errorf("it must be made again from a backup of the primary (docs/standby.md): %w", err), reseed: true}
	case job.CodeForbidden, job.CodeNotFound, job.CodeInvalid:
		return needsPerson{error: fmt.Errorf("the primary refuses its log: %w", err)}
	}
	return fmt.Errorf("the primary cannot be reached: %w", err)
}

// read passes the frames of a stream on.
func read(ctx context.Context, stream io.Reader, to chan<- logstream.Frame) error {
	r := logstream.NewReader(stream)
	for {
		frame, err := r.Next()
		if err != nil {
			return err
		}
		select {
		case to <- frame:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// run is what the next FollowLog has.
type run struct {
	entries []*jobpb.FollowedEntry
	bytes   int
}

func (r *run) full() bool { return r.bytes >= runBytes || len(r.entries) >= oplog.MaxFollowEntries }

// follow proposes the entries of frames until they end, and returns nil in that case.
func (f *Follower) follow(ctx context.Context, s *jobpb.StandbyState, frames <-chan logstream.Frame) error {
	last, recorded := s.Index, f.o.Now()
	silent := time.NewTimer(silence)
	defer silent.Stop()
	for {
		var next run
		var bad error // what came before it is still proposed
		select {
		case frame, ok := <-frames:
			if !ok {
				return nil
			}
			bad = f.take(frame, &next, &last)
		case <-silent.C:
			return fmt.Errorf("the primary has sent nothing for %v", silence)
		case <-ctx.Done():
			return ctx.Err()
		}
		if bad == nil {
			bad = f.takeMore(frames, &next, &last)
		}
		silent.Reset(silence)
		now := f.o.Now()
		if len(next.entries) > 0 || now.Sub(recorded).Abs() >= contactEvery {
			recorded = now
			if err := f.propose(ctx, s.Primary, next.entries); err != nil {
				return err
			}
		}
		if bad != nil {
			return bad
		}
	}
}

// takeMore adds the frames that are there already, as many as fit.
func (f *Follower) takeMore(frames <-chan logstream.Frame, next *run, last *uint64) error {
	for !next.full() {
		select {
		case frame, ok := <-frames:
			if !ok {
				return nil
			}
			if err := f.take(frame, next, last); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// take adds a frame to a run. last is the last entry that was taken.
func (f *Follower) take(frame logstream.Frame, next *run, last *uint64) error {
	if frame.Kind == logstream.Seen {
		f.progress.saw(frame.Index, f.o.State().GetIndex(), frame.At(), f.o.Now())
		return nil
	}
	if frame.Index != *last+1 {
		return fmt.Errorf("the primary sent entry %d after entry %d", frame.Index, *last)
	}
	if err := f.check(frame); err != nil {
		return err
	}
	*last = frame.Index
	next.entries = append(next.entries, &jobpb.FollowedEntry{Index: frame.Index, Term: frame.Term, Data: frame.Data})
	next.bytes += len(frame.Data)
	return nil
}

// check returns an error unless all members can apply an entry. One that cannot would stop.
func (f *Follower) check(frame logstream.Frame) error {
	if len(frame.Data) == 0 {
		return nil
	}
	raises, err := oplog.CheckFollowed(frame.Data)
	if err != nil {
		return needsPerson{error: fmt.Errorf("entry %d of the primary cannot be applied: %w", frame.Index, err)}
	}
	if runs := f.o.Runs(); raises > runs {
		return needsPerson{error: fmt.Errorf("the primary raised its cluster version to %d, and not all nodes of the standby run more than %d: upgrade them, and it goes on by itself", raises, runs)}
	}
	return nil
}

func (f *Follower) propose(ctx context.Context, primary string, entries []*jobpb.FollowedEntry) error {
	seen, seenMS, caughtUpMS := f.progress.known()
	err := f.o.Propose(ctx, &jobpb.FollowLog{Primary: primary, Entries: entries, SeenIndex: seen, SeenMs: seenMS, CaughtUpMs: caughtUpMS})
	if err != nil {
		return fmt.Errorf("propose the entries of the primary: %w", err)
	}
	f.progress.applied(f.o.State().GetIndex())
	return nil
}

// Status returns what is known of the standby. It does not block. Only on the leader does it
// have what the present leadership knows.
func (f *Follower) Status() *report.Standby {
	s := f.o.State()
	st := &report.Standby{
		Mode: s.GetMode(), Primary: s.GetPrimary(), Index: s.GetIndex(), Term: s.GetTerm(), PrimaryIndex: s.GetSeenIndex(),
		LastContactMs: s.GetSeenMs(), CaughtUpMs: s.GetCaughtUpMs(), NowMs: f.o.Now().UnixMilli(), PromotedMs: s.GetPromotedMs(),
	}
	if s.GetMode() == jobpb.StandbyMode_STANDBY_FOLLOWING {
		f.progress.fill(st)
	} else if st.PromotedMs != 0 {
		st.NowMs = st.PromotedMs // what was missing then
	}
	return st
}
