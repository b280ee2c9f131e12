package fsm

import (
	"cmp"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tarry/job"
	"tarry/job/jobpb"
)

// watchRig returns a rig with one reserved job, whose reservation is watched.
func watchRig(t *testing.T) (*rig, *Watch, job.Token) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Id: "a", Topic: "t", TtrMs: 100}), opReserve(1, "t"))
	w := r.m.Watch()
	t.Cleanup(w.Close)
	held := job.Token{Seq: 1, Generation: 1}
	require.NoError(t, w.Add([]job.Token{held}))
	require.Empty(t, w.Take())
	return r, w, held
}

// woken reports whether the watch was woken.
func woken(w *Watch) bool {
	select {
	case <-w.Wake():
		return true
	default:
		return false
	}
}

func TestWatchReportsEveryWayToEnd(t *testing.T) {
	for name, op := range map[string]*jobpb.Op{
		"finish":      opFinish(fenced(1, 1)),
		"delete":      opDelete(bySeq(1)),
		"release":     opRelease(&jobpb.Release{Ref: bySeq(1)}),
		"put off":     opRelease(&jobpb.Release{Ref: bySeq(1), DelayMs: 5}),
		"undelivered": opRelease(&jobpb.Release{Ref: bySeq(1), Undelivered: true}),
		"bury":        opBury(&jobpb.Bury{Ref: bySeq(1)}),
		"timeout":     opAdvance(10),
		"atomic add":  opAtomicAdd(&jobpb.AtomicAdd{Finish: &jobpb.Finish{Ref: bySeq(1)}, Adds: []*jobpb.Add{{Id: "b", Topic: "t", TtrMs: 1}}}),
	} {
		t.Run(name, func(t *testing.T) {
			r, w, held := watchRig(t)
			r.do(opTouch(bySeq(1), 100), opKick(bySeq(1)))
			require.False(t, woken(w), "still reserved")
			r.now += 100
			r.do(op)
			require.True(t, woken(w))
			require.Equal(t, []job.Token{held}, w.Take())
			require.False(t, woken(w))
			require.Empty(t, w.Take(), "each is returned once")
			require.Zero(t, r.m.Watching())
		})
	}
}

func TestWatchReportsAnEndFollowedByAReservation(t *testing.T) {
	r, w, held := watchRig(t)
	r.do(opRelease(&jobpb.Release{Ref: bySeq(1)}), opReserve(1, "t"))
	require.Equal(t, []job.Token{held}, w.Take())
}

func TestWatchReportsAReservationThatHadEnded(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Topic: "t"}), opReserve(1, "t"), opRelease(&jobpb.Release{Ref: bySeq(1)}), opReserve(1, "t"))
	r.do(opAdd(&jobpb.Add{Topic: "t"}), opReserve(1, "t"), opFinish(bySeq(2)))
	w := r.m.Watch()
	defer w.Close()
	past, present, gone := job.Token{Seq: 1, Generation: 1}, job.Token{Seq: 1, Generation: 2}, job.Token{Seq: 2, Generation: 1}
	require.NoError(t, w.Add([]job.Token{past, present, gone}))
	require.True(t, woken(w))
	require.ElementsMatch(t, []job.Token{past, gone}, w.Take())
}

// A node that lags may watch a reservation before it has applied it.
func TestWatchOfAReservationNotYetApplied(t *testing.T) {
	r := newRig(t, Options{})
	r.do(opAdd(&jobpb.Add{Topic: "t"}))
	w := r.m.Watch()
	defer w.Close()
	first, second, other := job.Token{Seq: 1, Generation: 1}, job.Token{Seq: 1, Generation: 2}, job.Token{Seq: 2, Generation: 1}
	require.NoError(t, w.Add([]job.Token{first, second, other}))
	r.do(opReserve(1, "t"))
	r.do(opAdd(&jobpb.Add{Topic: "u"}), opReserve(1, "u"))
	require.Empty(t, w.Take())
	r.do(opRelease(&jobpb.Release{Ref: bySeq(1)}), opReserve(1, "t"))
	require.Equal(t, []job.Token{first}, w.Take())
	r.do(opFinish(bySeq(1)), opFinish(bySeq(2)))
	require.ElementsMatch(t, []job.Token{second, other}, w.Take())
}

func TestWatchesOfOneReservationAreIndependent(t *testing.T) {
	r, w, held := watchRig(t)
	other := r.m.Watch()
	require.NoError(t, other.Add([]job.Token{held, held}))
	require.Equal(t, 2, r.m.Watching())
	other.Close()
	r.do(opFinish(bySeq(1)))
	require.Equal(t, []job.Token{held}, w.Take())
	require.Empty(t, other.Take())
	require.Zero(t, r.m.Watching())
	require.Empty(t, r.m.watches.bySeq)
}

func TestWatchReportsWhatAnInstalledStateEnded(t *testing.T) {
	leader := newRig(t, Options{FS: vfs.NewMem()})
	follower := newRig(t, Options{FS: vfs.NewMem()})
	for _, r := range []*rig{leader, follower} {
		r.do(opAdd(&jobpb.Add{Topic: "t"}), opAdd(&jobpb.Add{Topic: "t"}), opAdd(&jobpb.Add{Topic: "t"}), opReserve(3, "t"))
	}
	w := follower.m.Watch()
	defer w.Close()
	require.NoError(t, w.Add([]job.Token{{Seq: 1, Generation: 1}, {Seq: 2, Generation: 1}, {Seq: 3, Generation: 1}}))
	leader.do(opFinish(bySeq(1)), opRelease(&jobpb.Release{Ref: bySeq(2)}), opReserve(1, "t"))
	install(t, leader, follower)
	require.True(t, woken(w))
	require.ElementsMatch(t, []job.Token{{Seq: 1, Generation: 1}, {Seq: 2, Generation: 1}}, w.Take())
	follower.do(opFinish(bySeq(3)))
	require.Equal(t, []job.Token{{Seq: 3, Generation: 1}}, w.Take())
}

// install streams one machine's state into another.
func install(t testing.TB, from, to *rig) {
	data, at := archive(from)
	received, err := receive(to, data)
	require.NoError(t, err)
	require.NoError(t, to.m.Install(received, at))
	to.index = from.index
}

// With a random log, a watch of every reservation returns exactly those that ended in the
// model.
func TestWatchesMatchTheModel(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		s := newSimulation(t, seed)
		r := s.replica("the machine", Options{bounds: bounds{windowCap: 4, windowBudget: 100}})
		w := r.m.Watch()
		defer w.Close()
		open := map[job.Token]bool{}
		for r.at < *stepFlag {
			s.grow()
			var fresh []job.Token
			for _, results := range s.want[r.at:] {
				fresh = append(fresh, handedOut(results, open)...)
			}
			for _, results := range s.model.effectsSince {
				fresh = append(fresh, handedOut(results, open)...)
			}
			s.model.effectsSince = nil
			early := s.trouble.IntN(2) == 0 // as on a node that lags
			if early {
				require.NoError(t, w.Add(fresh))
			}
			s.applyLog(r, 1000)
			if !early {
				require.NoError(t, w.Add(fresh))
			}
			for _, ended := range w.Take() {
				require.True(t, open[ended], "%v is told once", ended)
				delete(open, ended)
			}
			requireOpen(t, s.model, open)
		}
	})
}

// handedOut adds the reservations in the results of an entry to open.
func handedOut(results []*jobpb.Result, open map[job.Token]bool) []job.Token {
	var list []job.Token
	for _, r := range results {
		for _, j := range r.Jobs {
			t := job.Token{Seq: j.Seq, Generation: j.Generation}
			open[t] = true
			list = append(list, t)
		}
	}
	return list
}

// requireOpen compares the reservations that a watch still follows with the model's.
func requireOpen(t *testing.T, m *model, open map[job.Token]bool) {
	var want, have []job.Token
	for seq, j := range m.jobs {
		if j.State == jobpb.State_STATE_RESERVED {
			want = append(want, job.Token{Seq: seq, Generation: j.generation})
		}
	}
	for k := range open {
		have = append(have, k)
	}
	order := func(a, b job.Token) int { return cmp.Compare(a.Seq, b.Seq) }
	slices.SortFunc(want, order)
	slices.SortFunc(have, order)
	require.Equal(t, want, have)
}

func BenchmarkCommitBesideWatches(b *testing.B) {
	for _, watched := range []int{0, 1000, 100_000} {
		b.Run("", func(b *testing.B) {
			r := newRig(b, Options{})
			w := r.m.Watch()
			defer w.Close()
			list := make([]job.Token, watched)
			for i := range list {
				list[i] = job.Token{Seq: 1<<40 + uint64(i), Generation: 1}
			}
			require.NoError(b, w.Add(list))
			for seq := uint64(1); b.Loop(); seq++ {
				r.do(opAdd(&jobpb.Add{Topic: "t"}), opReserve(1, "t"), opFinish(bySeq(seq)))
			}
		})
	}
}
