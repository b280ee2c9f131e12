package backupschedule

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"tarry/cluster/backup"
	"tarry/internal/s3"
	"tarry/internal/sleep"
	"tarry/job"
	"tarry/schedule"
)

const (
	// lookEvery bounds the time until a change of the clock is noticed.
	lookEvery = time.Minute

	// hearFor bounds how long a new leader waits for the reports of the other nodes, and for the
	// cluster's id.
	hearFor = 10 * time.Second

	// A failed backup is tried again after firstRetry, then after twice as long each time, up to
	// lastRetry. The next instant of the schedule is tried in any case.
	firstRetry = time.Minute
	lastRetry  = 15 * time.Minute
)

// Config says what a Scheduler does, and with what.
type Config struct {
	Timetable *schedule.Timetable // of whole seconds
	Dir       string              // where backups are, unless there is a Bucket
	Bucket    *s3.Bucket          // the same; nil: in Dir
	Keep      int                 // backups; at least 1
	FullEvery int                 // every so many backups one is whole, the others are incremental; 1: all are whole
	Rate      int64               // bytes a second; 0: without limit

	NodeID      string
	Incarnation string // of the node; hexadecimal
	ClusterID   func() string
	// Leads reports whether this node leads; changed is closed when that may have changed.
	Leads func() (leads bool, changed <-chan struct{})
	// Others returns, on the leader, the instants of the newest backups that other nodes have, and
	// whether all of them that are alive have reported since this one leads.
	Others func() (instants []int64, all bool)
	Now    func() time.Time // the queue's clock
	// Write writes a backup. If it can, it leaves out what base has; nil: it is whole.
	Write func(ctx context.Context, to io.Writer, base *Base) error
	// BaseOf reads from the beginning of a backup what one that builds on it may leave out. The
	// file has an id and a name. nil if FullEvery is 1.
	BaseOf func(r *backup.Reader, id, name string) (*job.BackupBase, error)
	// Incremental reports whether the releases of all nodes read incremental backups. One that does
	// not might lead next, and remove the bases of those that it keeps. nil if FullEvery is 1.
	Incremental func() bool
	// DataDir is the node's, LowWater the low-water mark of its disk in bytes.
	DataDir  string
	LowWater func() uint64
	Logger   *slog.Logger
}

// Scheduler makes backups. Create one with New, then call Run. Its other methods may be called
// from many goroutines.
type Scheduler struct {
	cfg Config
	at  place

	done int64 // the last instant that needs no backup any more; of the goroutine of Run

	mu     sync.Mutex
	status status
}

// status is what others see.
type status struct {
	leads     bool
	trouble   string // why no backup can be made; empty: none is known
	dueSince  time.Time
	last      File // the newest one known
	took      time.Duration
	completed uint64
	failed    uint64
	listing   Listing
}

// Listing is what is in the place.
type Listing struct {
	Files []File // the newest ones, the newest first
	More  int    // how many older ones there are
	Error string // why the place cannot be read or written; empty: it can, as far as is known
}

// listed is how many files a Listing has at most.
const listed = 1000

// New returns a Scheduler.
func New(cfg Config) *Scheduler {
	s := &Scheduler{cfg: cfg}
	how := reading{clusterID: cfg.ClusterID, rate: cfg.Rate}
	if cfg.Bucket != nil {
		s.at = &bucket{reading: how, Bucket: cfg.Bucket, incarnation: cfg.Incarnation}
		return s
	}
	s.at = &directory{
		reading: how, path: cfg.Dir, incarnation: cfg.Incarnation,
		room: func() error { return room(cfg.Dir, cfg.DataDir, cfg.LowWater()) },
	}
	return s
}

// Run makes backups while this node leads, until ctx ends.
func (s *Scheduler) Run(ctx context.Context) {
	s.checkPlace(ctx)
	s.look(ctx)
	for ctx.Err() == nil {
		leads, changed := s.cfg.Leads()
		if leads {
			s.leadUntilChanged(ctx, changed)
			continue
		}
		if !sleep.Until(ctx, lookEvery, changed) {
			return
		}
		if s.troubled() {
			s.checkPlace(ctx)
		}
		s.look(ctx)
	}
}

// leadUntilChanged makes backups until this node no longer leads. A backup under way then ends:
// the next leader makes it.
func (s *Scheduler) leadUntilChanged(ctx context.Context, changed <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		defer cancel()
		for leads := true; leads; leads, changed = s.cfg.Leads() {
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	})
	s.change(func(st *status) { st.leads = true })
	defer s.change(func(st *status) { st.leads, st.dueSince = false, time.Time{} })
	s.lead(ctx)
}

// lead makes the backups of the instants that come, until ctx ends.
func (s *Scheduler) lead(ctx context.Context) {
	s.hearOthers(ctx)
	s.done = 0       // another leader may have made backups
	var failed int64 // the last instant whose backup failed; 0: none
	var retry time.Duration
	var retryAt time.Time
	for {
		now := s.cfg.Now().UnixMilli()
		wait := lookEvery
		if next := s.cfg.Timetable.Next(now); next != 0 {
			wait = min(wait, time.Duration(next-now)*time.Millisecond)
		}
		instant := s.cfg.Timetable.Last(now)
		waits := instant == failed && time.Now().Before(retryAt)
		if instant != 0 && instant != s.done && !waits {
			s.becameDue(now)
			err := s.makeOnce(ctx, instant, now)
			switch {
			case ctx.Err() != nil:
				return
			case err == nil:
				s.look(ctx)
				s.done, failed, retry = instant, 0, 0
				continue // the next one may be due by now
			}
			s.fail(instant, err)
			retry = min(max(2*retry, firstRetry), lastRetry)
			failed, retryAt = instant, time.Now().Add(retry)
		}
		s.look(ctx)
		if !sleep.For(ctx, wait) {
			return
		}
	}
}

// look lists the backups for Listing.
func (s *Scheduler) look(ctx context.Context) {
	var now Listing
	var err error
	if now.Files, err = s.at.list(ctx); err != nil {
		now.Error = fmt.Sprintf("%s cannot list its scheduled backups: %s", s.cfg.NodeID, oneLine(err))
	}
	if len(now.Files) > listed {
		now.Files, now.More = slices.Clone(now.Files[:listed]), len(now.Files)-listed
	}
	s.change(func(st *status) { st.listing = now })
}

// hearOthers waits for what the other nodes have, but not for long. The first leader of a cluster
// gives it its id a moment after it leads: without that there is nothing to back up yet.
func (s *Scheduler) hearOthers(ctx context.Context) {
	for began := time.Now(); time.Since(began) < hearFor; {
		if _, all := s.cfg.Others(); all && s.cfg.ClusterID() != "" || !sleep.For(ctx, hearFor/100) {
			return
		}
	}
}

// makeOnce makes the backup of an instant unless the place or another node has it.
func (s *Scheduler) makeOnce(ctx context.Context, instant, now int64) error {
	began := time.Now()
	if err := s.at.prepare(ctx); err != nil {
		return err
	}
	list, err := readable(s.at.list(ctx))
	if err != nil {
		return err
	}
	for _, f := range list { // instants to come are of a clock that was set back since
		if f.Instant >= instant && f.Instant <= now {
			s.change(func(st *status) { st.trouble, st.dueSince, st.last = "", time.Time{}, f })
			return nil
		}
	}
	others, _ := s.cfg.Others()
	for _, at := range others {
		if at >= instant && at <= now {
			s.change(func(st *status) { st.trouble, st.dueSince = "", time.Time{} })
			return nil
		}
	}
	s.prune(ctx, list, "") // first, for the room; it matters if fewer are to be kept than before
	made, err := s.create(ctx, instant, list)
	if err != nil {
		return err
	}
	took := time.Since(began)
	s.cfg.Logger.Info("a scheduled backup is complete", "file", made.Name, "index", made.Index, "bytes", made.Bytes, "took", took.Round(time.Millisecond), "base", cmp.Or(made.Base, "none"))
	s.change(func(st *status) {
		st.trouble, st.dueSince, st.last, st.took = "", time.Time{}, made, took
		st.completed++
	})
	if list, err = readable(s.at.list(ctx)); err == nil {
		s.prune(ctx, list, made.Name)
	}
	return nil
}

// create makes the backup of an instant, on the newest of a list if it can.
func (s *Scheduler) create(ctx context.Context, instant int64, list []File) (File, error) {
	base, because := s.base(ctx, list)
	made, err := s.at.create(ctx, instant, func(ctx context.Context, to io.Writer) error { return s.cfg.Write(ctx, to, base) })
	if err != nil {
		return File{}, err
	}
	if base != nil && made.BaseID == "" {
		because = s.turnedWhole(&list[0])
	}
	if because != "" {
		s.cfg.Logger.Info("a scheduled backup is whole before its turn", "file", made.Name, "because", because)
	}
	return made, nil
}

func (s *Scheduler) prune(ctx context.Context, list []File, stays string) {
	removed, err := prune(ctx, s.at, list, s.cfg.Keep, stays)
	for _, f := range removed {
		s.cfg.Logger.Info("removed an old scheduled backup", "file", f.Name)
	}
	if err != nil {
		s.cfg.Logger.Warn("cannot remove old scheduled backups", "error", err)
	}
}

// checkPlace finds out before the first backup whether one can be made.
func (s *Scheduler) checkPlace(ctx context.Context) {
	err := s.at.check(ctx)
	var list []File
	if err == nil {
		list, err = readable(s.at.list(ctx))
	}
	if err != nil {
		s.cfg.Logger.Warn("cannot use the place for scheduled backups", "place", s.at.String(), "error", err)
	}
	s.change(func(st *status) {
		st.trouble = ""
		if len(list) > 0 {
			st.last = list[0]
		}
		if err != nil {
			st.trouble = fmt.Sprintf("%s cannot write scheduled backups: %s", s.cfg.NodeID, oneLine(err))
		}
	})
}

func (s *Scheduler) change(f func(*status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.status)
}

// becameDue records since when a backup has been due here. One that was missed counts from when this
// node leads: no alert is to fire because it is made up.
func (s *Scheduler) becameDue(now int64) {
	s.change(func(st *status) {
		if st.dueSince.IsZero() {
			st.dueSince = time.UnixMilli(now)
		}
	})
}

func (s *Scheduler) fail(instant int64, err error) {
	at := time.UnixMilli(instant).UTC().Format(time.RFC3339)
	s.cfg.Logger.Warn("a scheduled backup failed; trying again", "instant", at, "place", s.at.String(), "error", err)
	s.change(func(st *status) {
		st.failed++
		st.trouble = fmt.Sprintf("%s cannot make the scheduled backup of %s: %s", s.cfg.NodeID, at, oneLine(err))
	})
}

func (s *Scheduler) troubled() bool {
	_, trouble := s.State()
	return trouble != ""
}

// State returns the instant of the newest backup that this node can read, in Unix milliseconds,
// and why it cannot make backups. 0 and empty: there is none, and it can.
func (s *Scheduler) State() (instant int64, trouble string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status.trouble != "" {
		return 0, s.status.trouble // perhaps it cannot read them any more
	}
	return s.status.last.Instant, ""
}

// Listing returns what was in the place when this node last looked: within a minute, unless
// it makes a backup meanwhile. It does not block.
func (s *Scheduler) Listing() Listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.status.listing
	if l.Error == "" {
		l.Error = s.status.trouble
	}
	return l
}

// oneLine is an error's text without the line breaks of errors.Join.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
