package fsm

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"tarry/fsm/check"
	"tarry/fsm/view"
	"tarry/job/jobpb"
)

// applyLog applies up to n entries of the log to a machine, or all if n is 1000, and
// compares the results with the model's.
func (s *simulation) applyLog(r *replica, n int) {
	for r.at < len(s.log) {
		end := min(r.at+n, len(s.log))
		from := max(r.at-s.trouble.IntN(2), 0) // an entry applied already is skipped
		replies := s.trouble.IntN(3) > 0
		entries := copyEntries(s.log[from:end])
		results, changes, err := r.m.Apply(entries, replies)
		require.NoError(s.t, err)
		for i := r.at; i < end; i++ {
			e := event{entry: i}
			if replies {
				e.results = results[i-from]
			}
			r.note(e)
		}
		for i := from; replies && i < end; i++ {
			got := results[i-from]
			if i < r.at || s.want[i] == nil {
				require.Nil(s.t, got)
				continue
			}
			require.Len(s.t, got, len(s.want[i]))
			for k, g := range got {
				requireResult(s.t, s.want[i][k], g, "entry %d, operation %d of %s", i, k, r.name)
			}
		}
		if replies {
			s.compareEffects(r, changes)
		}
		if !s.early(r, end) {
			require.Equal(s.t, s.due[end-1], changes.NextDue, "next due after entry %d of %s", end-1, r.name)
			s.compareTopics(r, end-1)
		}
		for _, e := range entries {
			clear(e.Data) // what the machine keeps does not alias it
		}
		for _, p := range changes.Marks {
			require.NoError(s.t, p.View.Close())
		}
		r.at = end
		s.compareDigest(r)
		if n < 1000 {
			break
		}
	}
}

// early reports whether a machine with that many entries has let happen what the model does with the
// next entry of operations. Its state says so, also after a crash that took some of it back.
func (s *simulation) early(r *replica, entries int) bool {
	return entries > 0 && len(r.m.meta.Pending) < s.ahead[entries-1]
}

// compareDigest compares the digest of a machine with that of others when they had as many entries.
func (s *simulation) compareDigest(r *replica) {
	if r.at == 0 || s.early(r, r.at) {
		return
	}
	d := r.digest()
	if want, known := s.digests[r.at]; known {
		require.Equal(s.t, want, d, "digest of %s after %d entries", r.name, r.at)
	}
	s.digests[r.at] = d
}

func copyEntries(entries []Entry) []Entry {
	entries = slices.Clone(entries)
	for i := range entries {
		entries[i].Data = slices.Clone(entries[i].Data)
	}
	return entries
}

func requireResult(t *testing.T, want, got *jobpb.Result, what string, args ...any) {
	require.Equal(t, got.Code != jobpb.Code_OK, got.Message != "", "%v", got)
	got.Message = ""
	require.Truef(t, sameResult(want, got), "%s\nwant %v\ngot  %v", fmt.Sprintf(what, args...), want, got)
}

// disturb restarts, crashes or moves a machine, or gives it the state of another.
func (s *simulation) disturb(r *replica) {
	db := r.m.store.db
	switch s.trouble.IntN(14) {
	case 0:
		r.happened("flushed")
		require.NoError(s.t, db.Flush())
	case 1:
		r.happened("compacted")
		require.NoError(s.t, db.Compact(s.t.Context(), []byte{0}, []byte{255}, false))
	case 2:
		r.happened("reopened")
		r.reopen()
	case 3:
		reached := uint64(0)
		if r.at > 0 {
			reached = s.log[r.at-1].Index
		}
		r.happened("durable")
		require.NoError(s.t, r.m.MarkDurable(reached, 1, []byte("w"), 1))
	case 4:
		s.crash(r)
	case 5:
		r.happened("moved")
		s.move(r.rig)
	case 6:
		if from := s.replicas[s.trouble.IntN(len(s.replicas))]; from != r && from.at >= r.at {
			s.install(from, r)
		}
	}
}

// move moves a machine's state to another directory, as an installed snapshot does. Views
// of the old one end.
func (s *simulation) move(r *rig) {
	v := r.m.View()
	path := r.fs.PathJoin(rigDir, "moved")
	require.NoError(s.t, r.fs.RemoveAll(path))
	require.NoError(s.t, r.m.store.db.Checkpoint(path))
	before := r.digest()
	require.NoError(s.t, r.m.reopen(path))
	_, err := check.Digest(v, nil)
	require.ErrorIs(s.t, err, view.ErrEnded)
	require.NoError(s.t, v.Close())
	require.Equal(s.t, before, r.digest())
	r.check()
	require.NoError(s.t, moveBack(r, path))
}

// moveBack makes the state in path the one that Open opens.
func moveBack(r *rig, path string) error {
	live := r.m.dir.Live()
	if err := r.fs.RemoveAll(live); err != nil {
		return err
	}
	if err := r.m.store.db.Checkpoint(live); err != nil {
		return err
	}
	return r.m.reopen(live)
}

// crash reopens the machine from the files that a power failure leaves: the state at some
// earlier entry.
func (s *simulation) crash(r *replica) {
	clone := r.fs.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{
		UnsyncedDataPercent: s.trouble.IntN(101),
		RNG:                 s.trouble,
	})
	durable := r.m.public.durable.Index
	require.NoError(s.t, r.m.Close())
	r.fs, r.o.FS = clone, clone
	r.open()
	applied := r.m.Applied().Index
	require.GreaterOrEqual(s.t, applied, durable, "an index that was marked durable is durable")
	r.check()
	left := 0
	for left < r.at && s.log[left].Index <= applied {
		left++
	}
	r.at = left
	r.happened("crashed; it has %d entries", left)
	s.compareDigest(r)
}

// install gives a machine the state of another, as a snapshot.
func (s *simulation) install(from, to *replica) {
	install(s.t, from.rig, to.rig)
	to.at = from.at
	to.happened("installed a snapshot of %s", from.name)
	s.compareDigest(to)
}

// applyFresh gives a machine the state of another and applies the rest of the
// log to it entry by entry, reopened before each.
func (s *simulation) applyFresh(r, from *replica) {
	s.install(from, r)
	for r.at < len(s.log) {
		r.reopen()
		r.happened("reopened")
		s.applyLog(r, 1)
	}
}

// A crash can leave a state in which something took effect early, of a machine that had already
// applied the entry that decides when it does.
func TestAMachineThatCrashesAfterAnEarlyEffectMatchesTheModel(t *testing.T) {
	s := newSimulation(t, 1)
	r := s.replica("the machine", Options{FS: vfs.NewCrashableMem()})
	s.entry(rigStart, 0, slices.Values([]*jobpb.Op{opAdd(&jobpb.Add{Topic: "t", DelayMs: 5}), ahead(rigStart + 5)}))
	s.configure()
	s.entry(rigStart+10, 0, slices.Values([]*jobpb.Op{opAdd(&jobpb.Add{Topic: "t"})}))
	s.applyLog(r, 1)
	s.takeEffectEarly(r)
	require.NoError(t, r.m.Flush())
	s.applyLog(r, 1000)
	s.crash(r)
	require.Equal(t, 1, r.at, "what was not flushed is lost")
	require.True(t, s.early(r, r.at))
	s.applyLog(r, 1) // the configuration, before which nothing takes effect in the model
	s.applyLog(r, 1)
	require.False(t, s.early(r, r.at))
	s.compare(r.rig)
}
