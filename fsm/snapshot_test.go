package fsm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"tarry/fsm/check"
	"tarry/fsm/internal/record"
	"tarry/fsm/store"
	"tarry/fsm/view"
	"tarry/job"
	"tarry/job/jobpb"
)

// fill gives a rig jobs in every state, some in tables and some in a
// memtable only.
func fill(r *rig, jobs int) {
	for i := range jobs {
		r.one(opAdd(&jobpb.Add{Id: fmt.Sprintf("job-%d-%d", r.index, i), Topic: "orders", DelayMs: int64(i%3) * 1000, Body: []byte(strings.Repeat("b", 100))}))
		if i == jobs/2 {
			require.NoError(r.t, r.m.store.db.Flush())
		}
	}
	r.one(opReserve(5, "orders"))
}

func archive(r *rig) ([]byte, Applied) {
	s, err := r.m.OpenStream()
	require.NoError(r.t, err)
	data, err := io.ReadAll(s)
	require.NoError(r.t, err)
	require.EqualValues(r.t, s.Size, len(data))
	require.NoError(r.t, s.Close())
	return data, s.Applied
}

// receive writes an archive in pieces of odd sizes.
func receive(r *rig, data []byte) (*Receiver, error) {
	rec, err := r.m.Receive()
	require.NoError(r.t, err)
	for size := 1; len(data) > 0; size = size*3 + 1 {
		n, err := rec.Write(data[:min(size, len(data))])
		if err != nil {
			return rec, err
		}
		data = data[n:]
	}
	return rec, rec.Finish()
}

func files(r *rig) []string {
	names, err := r.fs.List(rigDir)
	require.NoError(r.t, err)
	return names
}

func TestStreamCarriesTheStateItWasOpenedAt(t *testing.T) {
	from, to := newRig(t, Options{}), newRig(t, Options{})
	fill(from, 200)
	fill(to, 3) // is replaced
	require.NoError(t, from.m.MarkDurable(from.index+5, 4, []byte("voters"), from.index))
	want := from.m.Applied()
	digest := from.digest()

	s, err := from.m.OpenStream()
	require.NoError(t, err)
	require.Equal(t, want, s.Applied)
	from.index = want.Index
	fill(from, 50) // does not show in the stream
	require.NoError(t, from.m.store.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false))
	rec, err := to.m.Receive()
	require.NoError(t, err)
	n, err := io.Copy(rec, s)
	require.NoError(t, err)
	require.Equal(t, s.Size, n)
	require.EqualValues(t, job.FirstVersion, rec.Header().Version)
	require.Contains(t, files(from), "checkpoint-1")
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.NotContains(t, files(from), "checkpoint-1")

	before := to.m.View()
	require.NoError(t, to.m.Install(rec, want))
	_, err = check.Digest(before, nil)
	require.ErrorIs(t, err, view.ErrEnded)
	require.NoError(t, before.Close())
	require.Equal(t, want, to.m.Applied())
	require.Equal(t, digest, to.digest())
	require.ElementsMatch(t, []string{"CURRENT", "gen-000002"}, files(to))
	require.NoError(t, rec.Abort(), "too late")

	// Both continue alike.
	to.reopen()
	require.Equal(t, digest, to.digest())
	from.reopen()
	back, err := receive(to, func() []byte { b, _ := archive(from); return b }())
	require.NoError(t, err)
	require.NoError(t, to.m.Install(back, from.m.Applied()))
	to.index, from.index = from.m.Applied().Index, from.m.Applied().Index
	fill(to, 20)
	fill(from, 20)
	require.Equal(t, from.digest(), to.digest())
}

// Index and data of a stream agree, whatever is applied while it is opened: replaying the
// log from its index on leads to the same state.
func TestStreamWhileEntriesAreApplied(t *testing.T) {
	from, to := newRig(t, Options{}), newRig(t, Options{})
	var entries []Entry
	for i := range 1500 {
		ops := []*jobpb.Op{opAdd(&jobpb.Add{Topic: "orders", DelayMs: int64(i % 7), Body: bytes.Repeat([]byte{byte(i)}, 1000)})}
		if i%3 == 0 {
			ops = append(ops, opAdvance(10), opReserve(2, "orders"))
		}
		entries = append(entries, Entry{Index: uint64(i + 1), Term: 1, Data: encodeEntry(t, rigStart+int64(i), ops...)})
	}
	applied, open := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(open)
		var err error
		for i := 0; i < len(entries) && err == nil; i++ {
			if i%300 == 150 {
				open <- struct{}{} // and goes on meanwhile
			}
			_, _, err = from.m.Apply(entries[i:i+1], false)
		}
		applied <- err
	}()
	for range open {
		data, at := archive(from)
		rec, err := receive(to, data)
		require.NoError(t, err)
		require.NoError(t, to.m.Install(rec, at))
		_, _, err = to.m.Apply(entries[at.Index:min(at.Index+40, uint64(len(entries)))], false)
		require.NoError(t, err)
		to.check()
	}
	require.NoError(t, <-applied)
	_, _, err := to.m.Apply(entries, false) // those it has are skipped
	require.NoError(t, err)
	require.Equal(t, from.digest(), to.digest())
}

func TestStreamOfAFreshMachine(t *testing.T) {
	from, to := newRig(t, Options{}), newRig(t, Options{})
	data, applied := archive(from)
	require.Zero(t, applied)
	rec, err := receive(to, data)
	require.NoError(t, err)
	require.NoError(t, to.m.Install(rec, Applied{}))
}

func TestClosedStreamGivesNothing(t *testing.T) {
	r := newRig(t, Options{})
	s, err := r.m.OpenStream()
	require.NoError(t, err)
	_, err = s.Read(make([]byte, 10))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = s.Read(make([]byte, 10))
	require.ErrorContains(t, err, "closed")
}

// refuses checks that an archive is not installed and leaves nothing behind.
func refuses(r *rig, data []byte, want Applied, says string) {
	r.t.Helper()
	digest := r.digest()
	rec, err := receive(r, data)
	if err == nil {
		err = r.m.Install(rec, want)
	} else {
		require.ErrorIs(r.t, rec.Finish(), err, "the first failure is kept")
		require.NoError(r.t, rec.Abort())
	}
	require.ErrorContains(r.t, err, says)
	require.NotErrorIs(r.t, err, ErrHalfInstalled)
	require.Equal(r.t, digest, r.digest())
	require.ElementsMatch(r.t, []string{"CURRENT", "gen-000001"}, files(r))
}

func TestBadArchivesAreRefused(t *testing.T) {
	from, to := newRig(t, Options{}), newRig(t, Options{})
	fill(from, 20)
	fill(to, 2)
	data, want := archive(from)
	tests := map[string]struct {
		data []byte
		want Applied
		says string
	}{
		"cut":         {data[:len(data)-1], want, "ended early"},
		"other index": {data, Applied{Index: want.Index + 1, Term: want.Term}, fmt.Sprintf("holds the state at entry %d of term 1, expected was entry %d", want.Index, want.Index+1)},
		"other term":  {data, Applied{Index: want.Index, Term: 9}, "expected was entry"},
		"no store":    {pack(t, vfs.NewMem(), nil, want), want, "does not exist"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { refuses(to, tt.data, tt.want, tt.says) })
	}
	t.Run("a newer state format", func(t *testing.T) {
		other := newRig(t, Options{})
		fill(other, 1)
		state := other.m.meta.State.Append(nil)
		newer := bytes.Clone(state)
		newer[0]++
		require.NoError(t, other.m.store.db.Set(record.KeyState, newer, pebble.NoSync))
		dir := "state/checkpoint-9"
		_, err := other.m.checkpoint(dir)
		require.NoError(t, err)
		require.NoError(t, other.m.store.db.Set(record.KeyState, state, pebble.NoSync))
		refuses(to, packDir(t, other.fs, dir, want), want, fmt.Sprintf("format version %d", record.FormatVersion+1))
	})
	for at := 0; at < len(data); at += 499 {
		bad := bytes.Clone(data)
		bad[at] ^= 0x10
		refuses(to, bad, want, "")
	}
}

// packDir makes an archive of any directory, and removes that.
func packDir(t testing.TB, fsys vfs.FS, dir string, a Applied) []byte {
	s, err := store.OpenArchive(fsys, dir, store.Header{Index: a.Index, Term: a.Term, Version: job.FirstVersion})
	require.NoError(t, err)
	data, err := io.ReadAll(s)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	return data
}

// pack makes an archive of files by name.
func pack(t testing.TB, fsys vfs.FS, files map[string][]byte, a Applied) []byte {
	const dir = "packed"
	require.NoError(t, fsys.MkdirAll(dir, 0o750))
	for name, content := range files {
		f, err := fsys.Create(fsys.PathJoin(dir, name), vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		_, err = f.Write(bytes.Clone(content))
		require.NoError(t, errors.Join(err, f.Close()))
	}
	return packDir(t, fsys, dir, a)
}

// A failure at any write or sync of receiving and installing leaves the old state or the
// new one, whole, and the machine serves only a state that is certain.
func TestInstallFailsWhole(t *testing.T) {
	from := newRig(t, Options{})
	fill(from, 20)
	data, want := archive(from)
	newDigest := from.digest()
	halves, wholes := 0, 0
	for n, last := int64(0), false; !last; n++ {
		mem := vfs.NewCrashableMem()
		fail := &failNth{n: n}
		m, err := Open(rigDir, Options{FS: errorfs.Wrap(mem, fail), CacheBytes: 1 << 20, MemTableBytes: 1 << 20, OnFatal: func(error) {}})
		require.NoError(t, err)
		old := &rig{t: t, fs: mem, m: m, now: rigStart}
		fill(old, 2)
		require.NoError(t, m.MarkDurable(old.index, 1, nil, 0))
		oldDigest := old.digest()

		fail.on.Store(true)
		err = tryInstall(m, data, want)
		fail.on.Store(false)
		last = fail.seen.Load() <= n
		switch {
		case errors.Is(err, ErrHalfInstalled):
			halves++
		case err != nil:
			wholes++
			require.Equal(t, oldDigest, old.digest(), "failure %d: %v", n, err)
			old.do(opAdd(&jobpb.Add{Topic: "orders"})) // it serves
			require.NoError(t, m.MarkDurable(old.index, 1, nil, 0))
			oldDigest = old.digest()
		}
		after := &rig{t: t, fs: mem.CrashClone(vfs.CrashCloneCfg{}), o: Options{OnFatal: func(error) {}}}
		after.o.FS = after.fs
		after.open()
		after.check()
		if err == nil || (errors.Is(err, ErrHalfInstalled) && after.digest() != oldDigest) {
			require.Equal(t, want.Index, after.m.Applied().Index)
			require.Equal(t, newDigest, after.digest(), "failure %d: %v", n, err)
		} else {
			require.Equal(t, oldDigest, after.digest(), "failure %d: %v", n, err)
		}
		require.NoError(t, after.m.Close())
		_ = m.Close() // may fail with what was injected
	}
	require.Greater(t, wholes, 10)
	require.Greater(t, halves, 3)
}

// failNth fails one write or sync: the n-th since it was switched on.
type failNth struct {
	on   atomic.Bool
	n    int64
	seen atomic.Int64
}

func (f *failNth) String() string { return "(FailNth)" }

func (f *failNth) MaybeError(op errorfs.Op) error {
	if path, _ := strings.CutPrefix(op.Path, rigDir+"/"); path == "gen-000002" || strings.HasPrefix(path, "gen-000002/") {
		return nil // the new store's own; there the store would end the process
	}
	if f.on.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && f.seen.Add(1)-1 == f.n {
		return errorfs.ErrInjected
	}
	return nil
}

func tryInstall(m *Machine, data []byte, want Applied) (err error) {
	r, err := m.Receive()
	if err != nil {
		return err
	}
	if _, err := r.Write(data); err != nil {
		return errors.Join(err, r.Abort())
	}
	return m.Install(r, want)
}
