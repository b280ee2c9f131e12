package standby

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/cluster/logstream"
	"tarry/cluster/report"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

// primary is a Source, and the state of a standby that applies what is proposed.
type primary struct {
	t  *testing.T
	mu sync.Mutex
	// log has the data of the entries from 1 on.
	log    [][]byte
	failed error // of Open
	runs   uint32
	opened []uint64 // positions
	state  *jobpb.StandbyState
	last   *jobpb.FollowLog
	ending bool // each stream ends after its entries
	live   *io.PipeWriter
}

func newPrimary(t *testing.T, entries int) *primary {
	p := &primary{t: t, runs: job.MaxVersion, state: &jobpb.StandbyState{Mode: jobpb.StandbyMode_STANDBY_FOLLOWING, Primary: "p", Index: 3, Term: 1}}
	for range entries {
		p.log = append(p.log, entry(t, &jobpb.Op{Kind: &jobpb.Op_Advance{Advance: &jobpb.Advance{Max: 1}}}))
	}
	return p
}

func entry(t *testing.T, op *jobpb.Op) []byte {
	data, err := oplog.AppendOp(oplog.AppendEntryHeader(nil, 1), op)
	require.NoError(t, err)
	return data
}

func (p *primary) Open(_ context.Context, o job.LogOptions) (io.ReadCloser, string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Equal(p.t, "p", o.ClusterID)
	p.opened = append(p.opened, o.After)
	if p.failed != nil {
		return nil, "", p.failed
	}
	r, to := io.Pipe()
	p.live = to
	entries, ends := p.log, p.ending
	go func() {
		w, err := logstream.NewWriter(to)
		err = errors.Join(err, w.Write(logstream.NewSeen(uint64(len(entries)), time.Now())))
		for i := o.After; i < uint64(len(entries)); i++ {
			err = errors.Join(err, w.Write(logstream.Frame{Kind: logstream.Entry, Index: i + 1, Term: 1, Data: entries[i]}))
		}
		if errors.Join(err, w.Flush()) == nil && ends {
			to.Close()
		}
	}()
	return r, "http://p1", nil
}

func (p *primary) allRun() uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.runs
}

// positions returns those from which streams were opened.
func (p *primary) positions() []uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.opened)
}

func (p *primary) State() *jobpb.StandbyState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

func (p *primary) propose(_ context.Context, f *jobpb.FollowLog) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = f
	s := &jobpb.StandbyState{Mode: p.state.Mode, Primary: "p", Index: p.state.Index, Term: 1}
	for _, e := range f.Entries {
		require.Equal(p.t, s.Index+1, e.Index)
		s.Index = e.Index
	}
	p.state = s
	return nil
}

// follow runs a follower in a bubble of time until the test has looked at it.
func (p *primary) follow(source Source, look func(f *Follower)) {
	synctest.Test(p.t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := New(Options{Source: source, State: p.State, Propose: p.propose, Runs: p.allRun, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
		var running sync.WaitGroup
		running.Go(func() { f.Run(ctx) })
		synctest.Wait()
		look(f)
		cancel()
		running.Wait()
	})
}

func TestAFollowerProposesTheEntriesAfterItsPosition(t *testing.T) {
	p := newPrimary(t, 40)
	p.follow(p, func(f *Follower) {
		s := f.Status()
		require.Equal(t, uint64(40), s.Index)
		require.Equal(t, uint64(40), s.PrimaryIndex)
		require.True(t, s.Connected)
		require.Zero(t, s.LagEntries())
		require.Zero(t, s.LagSeconds())
		require.Equal(t, []uint64{3}, p.positions())
		require.Equal(t, uint64(40), p.last.SeenIndex)
	})
}

func TestAFollowerConnectsAgain(t *testing.T) {
	p := newPrimary(t, 10)
	p.ending = true
	p.follow(p, func(f *Follower) {
		require.Contains(t, f.Status().Problem, "ended the stream")
		time.Sleep(pause + time.Millisecond)
		require.Equal(t, []uint64{3, 10}, p.positions())
	})
}

func TestALagGrowsWhileThePrimaryIsSilent(t *testing.T) {
	p := newPrimary(t, 10)
	p.follow(p, func(f *Follower) {
		time.Sleep(silence - time.Millisecond)
		require.True(t, f.Status().Connected)
		p.mu.Lock()
		p.failed = errors.New("connection refused")
		p.mu.Unlock()
		time.Sleep(time.Minute)
		s := f.Status()
		require.False(t, s.Connected)
		require.Contains(t, s.Problem, "connection refused")
		require.InDelta(t, 70, s.LagSeconds(), 0.01)
		require.Greater(t, len(p.positions()), 30)
	})
}

func TestWhatNeedsAPerson(t *testing.T) {
	for code, reseed := range map[job.Code]bool{job.CodeLogTruncated: true, job.CodeConflict: true, job.CodeForbidden: false} {
		p := newPrimary(t, 10)
		p.failed = job.Errorf(code, "because")
		p.follow(p, func(f *Follower) {
			s := f.Status()
			require.Equal(t, reseed, s.Reseed, code)
			require.Contains(t, s.Problem, "because")
			time.Sleep(longPause * 3)
			require.Less(t, len(p.positions()), 6)
		})
	}
	p := newPrimary(t, 10)
	p.follow(nil, func(f *Follower) { require.Contains(t, f.Status().Problem, "without --follow") })
}

// What comes before an entry that cannot be applied is applied.
func TestAFollowerStopsBeforeAVersionThatItsMembersDoNotRun(t *testing.T) {
	p := newPrimary(t, 10)
	p.log[8] = entry(t, &jobpb.Op{Kind: &jobpb.Op_RaiseVersion{RaiseVersion: &jobpb.RaiseVersion{To: p.runs + 1}}})
	p.follow(p, func(f *Follower) {
		s := f.Status()
		require.Equal(t, uint64(8), s.Index)
		require.Contains(t, s.Problem, "raised its cluster version")
		require.False(t, s.Reseed)
		p.mu.Lock()
		p.runs++ // they were upgraded
		p.mu.Unlock()
		time.Sleep(longPause + time.Millisecond)
		require.Equal(t, uint64(10), f.Status().Index)
	})
	p = newPrimary(t, 10)
	p.log[5] = []byte{oplog.EntryVersion + 1}
	p.follow(p, func(f *Follower) {
		require.Equal(t, uint64(5), f.Status().Index)
		require.Contains(t, f.Status().Problem, "entry 6 of the primary cannot be applied")
	})
}

func TestAFollowerEndsWithThePromotion(t *testing.T) {
	p := newPrimary(t, 10)
	p.follow(p, func(f *Follower) {
		p.mu.Lock()
		p.state = &jobpb.StandbyState{Mode: jobpb.StandbyMode_STANDBY_PROMOTED, Primary: "p", Index: 10, CaughtUpMs: 1000, PromotedMs: 3500}
		live := p.live
		p.mu.Unlock()
		live.Close()
		time.Sleep(time.Hour)
		require.Equal(t, []uint64{3}, p.positions())
		s := f.Status()
		require.Equal(t, 2.5, s.LagSeconds(), "as it was then")
	})
}

// A message that waits behind others does not make the standby look closer than it is, nor does a
// clock of the primary that is ahead or behind.
func TestTheLagCountsFromTheSending(t *testing.T) {
	for _, skew := range []time.Duration{-time.Hour, 0, time.Hour} {
		var p progress
		began := time.UnixMilli(1_000_000)
		at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
		p.connected("p1")
		p.saw(10, 10, at(0).Add(skew), at(0))
		p.saw(20, 10, at(1).Add(skew), at(30)) // it took 29 s
		p.applied(20)
		s := &report.Standby{NowMs: at(30).UnixMilli()}
		p.fill(s)
		require.Equal(t, 29.0, s.LagSeconds(), skew)
	}
}
