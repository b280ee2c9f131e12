package logstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/require"
)

// memFiles are the files of a log in memory. Names of segments end with .wal.
type memFiles map[string][]byte

func (m memFiles) clone() memFiles {
	c := memFiles{}
	for name, data := range m {
		c[name] = bytes.Clone(data)
	}
	return c
}

// lastSegment returns the name of the newest segment.
func lastSegment(files memFiles) string {
	last := ""
	for name := range files {
		if strings.HasSuffix(name, ".wal") {
			last = max(last, name)
		}
	}
	return last
}

// memSegments is a types.VFS of them. raft-wal also uses it in the background.
type memSegments struct {
	mu    sync.Mutex
	files memFiles
}

// now returns what the files hold.
func (m *memSegments) now() memFiles {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files.clone()
}

func (m *memSegments) ListDir(string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.files)), nil
}

func (m *memSegments) Create(_, name string, size uint64) (types.WritableFile, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[name] = make([]byte, size)
	return memFile{m, name}, nil
}

func (m *memSegments) Delete(_, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.files, name)
	return nil
}

func (m *memSegments) OpenReader(dir, name string) (types.ReadableFile, error) {
	return m.OpenWriter(dir, name)
}

func (m *memSegments) OpenWriter(_, name string) (types.WritableFile, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.files[name]; !ok {
		return nil, fs.ErrNotExist
	}
	return memFile{m, name}, nil
}

type memFile struct {
	of   *memSegments
	name string
}

func (f memFile) ReadAt(p []byte, at int64) (int, error) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	data := f.of.files[f.name]
	n := copy(p, data[min(at, int64(len(data))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f memFile) WriteAt(p []byte, at int64) (int, error) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	data := f.of.files[f.name]
	if more := at + int64(len(p)) - int64(len(data)); more > 0 {
		data = append(data, make([]byte, more)...)
		f.of.files[f.name] = data
	}
	return copy(data[at:], p), nil
}

func (memFile) Sync() error  { return nil }
func (memFile) Close() error { return nil }

// memLog is an open log in memory.
type memLog struct {
	*Stores
	t        *testing.T
	segments *memSegments
	records  vfs.FS
}

const memSegmentBytes = 2 << 10

func openMem(t *testing.T, files memFiles) (*memLog, error) {
	l := &memLog{t: t, segments: &memSegments{files: memFiles{}}, records: vfs.NewMem()}
	require.NoError(t, l.records.MkdirAll("raft/wal", 0o700))
	for name, data := range files {
		if strings.HasSuffix(name, ".wal") {
			l.segments.files[name] = data
			continue
		}
		put(t, l.records, name, data)
	}
	var err error
	l.Stores, err = Open("raft", Options{SegmentBytes: memSegmentBytes, Disk: &Disk{Segments: l.segments, Records: l.records}, Fatal: func(error) {}})
	return l, err
}

// files returns what a process that was killed now leaves.
func (l *memLog) files() memFiles {
	files := l.segments.now()
	for _, name := range []string{"raft/votes", "raft/wal/segments", "raft/wal/watermark"} {
		if _, err := l.records.Stat(name); err == nil {
			files[name] = contentOf(l.t, l.records, name)
		}
	}
	return files
}

func (l *memLog) append(first, last, term uint64, size int) {
	l.t.Helper()
	var es []*raft.Log
	for i := first; i <= last; i++ {
		es = append(es, &raft.Log{Index: i, Term: term, Data: bytesOf(i, term, size)})
	}
	require.NoError(l.t, l.Log.StoreLogs(es))
}

func bytesOf(index, term uint64, size int) []byte { return content(index, term, 2*size)[:size] }

// state is all that a log holds, as text. An entry that cannot be read is an error.
func (l *memLog) state() (string, error) {
	var b strings.Builder
	first, err := l.Log.FirstIndex()
	if err != nil {
		return "", err
	}
	last, err := l.Log.LastIndex()
	if err != nil {
		return "", err
	}
	for i := first; i <= last && last > 0; i++ {
		var e raft.Log
		if err := l.Log.GetLog(i, &e); err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%d %d %d %s\n", e.Index, e.Term, e.Type, e.Data)
	}
	term, err := l.Stable.GetUint64([]byte(keyTerm))
	if err != nil && !errors.Is(err, errNotFound) {
		return "", err
	}
	fmt.Fprintf(&b, "%d to %d, term %d", first, last, term)
	return b.String(), nil
}

// stateOf opens a log of files, which it may change, and returns its state.
func stateOf(t *testing.T, files memFiles) (string, error) {
	l, err := openMem(t, files)
	if err != nil {
		return "", err
	}
	state, err := l.state()
	require.NoError(t, l.Close())
	return state, err
}

// usedMemLog is a log with full segments and a last one that has a few appends, of which the last
// begins and ends at the given places.
func usedMemLog(t *testing.T) (now, before memFiles, name string, from, to int64) {
	l, err := openMem(t, nil)
	require.NoError(t, err)
	require.NoError(t, l.Stable.SetUint64([]byte(keyTerm), 3))
	l.append(1, 3, 1, 20)
	l.append(4, 20, 2, 100)
	l.append(21, 40, 2, 100)
	l.append(41, 50, 3, 20)
	l.append(51, 51, 3, 40)
	l.append(52, 55, 3, 30)
	before = l.files()
	name = lastSegment(before)
	from = int64(usedOf(before[name])+7) / 8 * 8
	l.append(56, 58, 3, 30)
	now = l.files()
	require.Equal(t, name, lastSegment(now))
	to = int64(usedOf(now[name])+7) / 8 * 8
	require.Len(t, l.segments.now(), 3)
	require.NoError(t, l.Close())
	return now, before, name, from, to
}

// Every bit of every file is flipped. The log is refused, or reading it fails, or nothing is lost
// or changed.
func TestAFlippedBitInAnyFileIsFoundOrHasNoEffect(t *testing.T) {
	t.Parallel()
	now, before, last, from, to := usedMemLog(t)
	behind := now.clone() // as after a power failure
	behind["raft/wal/watermark"] = before["raft/wal/watermark"]
	original := behind.clone() // as a release without a watermark leaves it
	delete(original, "raft/wal/watermark")
	original["raft/wal/segments"] = withoutMention(t, now["raft/wal/segments"])
	for name, c := range map[string]struct {
		files    memFiles
		lastOnly bool                             // flip bits of the last segment only, and only some
		silent   func(file string, at int64) bool // allowed
	}{
		"killed":            {now, false, func(string, int64) bool { return false }},
		"watermark behind":  {behind, true, func(string, int64) bool { return false }},
		"without watermark": {original, true, func(file string, at int64) bool { return file == last && at >= from && at < to }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, err := stateOf(t, c.files.clone())
			require.NoError(t, err)
			found, none := 0, 0
			for file, data := range c.files {
				if c.lastOnly && file != last {
					continue
				}
				step := 1
				if file != last && strings.HasSuffix(file, ".wal") {
					step = 13 // of a full segment only some
				}
				if c.lastOnly {
					step = 3
				}
				if testing.Short() {
					step *= 29 // with the race detector each bit takes ten times as long
				}
				for bit := 0; bit < 8*min(usedOf(data)+2, len(data)); bit += step {
					files := c.files.clone()
					files[file][bit/8] ^= 1 << (bit % 8)
					got, err := stateOf(t, files)
					switch {
					case err != nil:
						found++
					case got == want:
						none++
					default:
						require.True(t, c.silent(file, int64(bit/8)), "%s: byte %d, bit %d: %s", file, bit/8, bit%8, got[strings.LastIndexByte(got, '\n')+1:])
					}
				}
			}
			t.Logf("%d flipped bits were found, %d had no effect", found, none)
		})
	}
}

// withoutMention returns a list of segments as the releases without a watermark write it.
func withoutMention(t *testing.T, list []byte) []byte {
	mem := vfs.NewMem()
	r := record{mem, "", listFile}
	put(t, mem, listFile, list)
	data, err := r.load()
	require.NoError(t, err)
	without := bytes.Replace(data, []byte(`,"watermark":true`), nil, 1)
	require.NotEqual(t, data, without)
	require.NoError(t, r.store(without))
	return contentOf(t, mem, listFile)
}

// A power failure leaves any of the last append's sectors unwritten, and a failed write any of its
// bytes at the end. The log ends before it then, also if the process ends again while it starts,
// and goes on.
func TestATornAppendIsCutOff(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for name, sizes := range map[string][]int{
		"small":   {5, 9, 1},
		"sectors": {300, 900, 520, 1},
		"first":   {40, 700},
		"zeros":   {-1500, 30, -600, 600},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := openMem(t, nil)
			require.NoError(t, err)
			next := uint64(1)
			if name != "first" {
				l.append(1, 4, 1, 50)
				next = 5
			}
			before := l.files()
			want, err := l.state()
			require.NoError(t, err)
			var es []*raft.Log
			for i, size := range sizes {
				e := &raft.Log{Index: next + uint64(i), Term: 2, Data: make([]byte, max(size, -size))}
				if size > 0 {
					e.Data = bytesOf(e.Index, 2, size)
				}
				es = append(es, e)
			}
			require.NoError(t, l.Log.StoreLogs(es))
			after := l.files()
			whole, err := l.state()
			require.NoError(t, err)
			require.NoError(t, l.Close())

			last := lastSegment(before)
			from, to := (usedOf(before[last])+7)/8*8, usedOf(after[last])
			check := func(what string, file []byte) {
				files := before.clone()
				files[last] = file
				torn, err := openMem(t, files)
				require.NoError(t, err, what)
				got, err := torn.state()
				require.NoError(t, err, what)
				if got == whole { // what is missing was zeros
					require.NoError(t, torn.Close())
					return
				}
				require.Equal(t, want, got, what)
				require.LessOrEqual(t, usedOf(torn.segments.now()[last]), from, what)
				torn.append(next, next, 3, 20)
				require.NoError(t, torn.Close())
				got, err = stateOf(t, torn.files())
				require.NoError(t, err, what)
				require.Contains(t, got, fmt.Sprintf("to %d,", next), what)
			}
			for cut := from; cut < to; cut++ {
				file := bytes.Clone(after[last])
				clear(file[cut:])
				check(fmt.Sprint("cut at ", cut), file)
			}
			for range 300 {
				file := bytes.Clone(after[last])
				share := rng.IntN(4)
				for s := from / sector; s*sector < to; s++ {
					if rng.IntN(4) <= share {
						clear(file[max(s*sector, from):min((s+1)*sector, len(file))])
					}
				}
				check("sectors", file)
			}
		})
	}
}

// A segment that is in the list may be missing or empty only before the first append to it.
func TestALostSegmentIsRefused(t *testing.T) {
	t.Parallel()
	now, before, last, _, _ := usedMemLog(t)
	var first string
	for name := range now {
		if strings.HasSuffix(name, ".wal") && (first == "" || name < first) {
			first = name
		}
	}
	for _, file := range []string{first, last} {
		for name, damage := range map[string]func(memFiles){
			"missing": func(f memFiles) { delete(f, file) },
			"emptied": func(f memFiles) { f[file] = nil },
			"zeros":   func(f memFiles) { clear(f[file]) },
			"cut":     func(f memFiles) { f[file] = f[file][:100] },
			"older":   func(f memFiles) { f[file] = before[file] },
		} {
			if bytes.Equal(now[file], before[file]) && name == "older" {
				continue
			}
			t.Run(name+" "+file, func(t *testing.T) {
				files := now.clone()
				damage(files)
				_, err := stateOf(t, files)
				require.Error(t, err)
				require.NotErrorIs(t, err, raft.ErrLogNotFound)
				t.Log(err)
			})
		}
	}
	files := now.clone()
	delete(files, "raft/wal/watermark")
	_, err := stateOf(t, files)
	require.ErrorIs(t, err, ErrFileDamaged, "the list mentions it")
}

// A process may end between the list of segments and the new segment, or before the first append
// to it.
func TestASegmentWithoutAnAppendMayBeMissing(t *testing.T) {
	l, err := openMem(t, nil)
	require.NoError(t, err)
	l.append(1, 3, 1, 700)
	require.NoError(t, l.Log.DeleteRange(9, 9), "it waits for the next segment")
	want, err := l.state()
	require.NoError(t, err)
	require.NoError(t, l.Close())
	files := l.files()
	last := lastSegment(files)
	require.Zero(t, usedOf(files[last]))
	for _, damage := range []func(memFiles){func(f memFiles) { delete(f, last) }, func(f memFiles) { f[last] = nil }, func(memFiles) {}} {
		changed := files.clone()
		damage(changed)
		got, err := stateOf(t, changed)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// The watermark is lowered before the end of the log is deleted: wherever the process ends, the
// log is not behind it.
func TestTheWatermarkFollowsTheEndOfTheLog(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*memLog)
		last   uint64 // of the log after
	}{
		"a conflict":                 {func(l *memLog) { require.NoError(l.t, l.Log.DeleteRange(15, 20)) }, 14},
		"a conflict, then an append": {func(l *memLog) { require.NoError(l.t, l.Log.DeleteRange(15, 20)); l.append(15, 16, 2, 50) }, 16},
		"a state of the leader":      {func(l *memLog) { require.NoError(l.t, l.Log.DeleteRange(1, 20)) }, 0},
		"the log goes on behind it":  {func(l *memLog) { require.NoError(l.t, l.Log.DeleteRange(1, 20)); l.append(900, 901, 2, 50) }, 901},
		"its start is deleted":       {func(l *memLog) { require.NoError(l.t, l.Log.DeleteRange(1, 18)) }, 20},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := openMem(t, nil)
			require.NoError(t, err)
			l.append(1, 10, 1, 100)
			l.append(11, 20, 1, 100)
			before := l.files()
			c.change(l)
			after := l.files()
			require.NoError(t, l.Close())
			got, err := stateOf(t, after.clone())
			require.NoError(t, err)
			require.Contains(t, got, fmt.Sprintf("to %d,", c.last))
			if c.last >= 20 {
				return
			}
			between := before.clone() // lowered, and the end is not deleted yet
			between["raft/wal/watermark"] = after["raft/wal/watermark"]
			got, err = stateOf(t, between)
			if c.last == 16 { // which is of another term, so this cannot be
				require.ErrorContains(t, err, "older copy")
				return
			}
			require.NoError(t, err)
			require.Contains(t, got, "to 20,")
			wrong := after.clone()
			wrong["raft/wal/watermark"] = before["raft/wal/watermark"]
			_, err = stateOf(t, wrong)
			require.ErrorContains(t, err, "are lost")
		})
	}
}

// A release without a watermark may shorten the log after one with it has run.
func TestAWatermarkDoesNotCountAfterAReleaseThatDoesNotWriteIt(t *testing.T) {
	l, err := openMem(t, nil)
	require.NoError(t, err)
	l.append(1, 20, 1, 50)
	mark := l.files()["raft/wal/watermark"]
	require.NoError(t, l.Log.DeleteRange(15, 20))
	files := l.files()
	require.NoError(t, l.Close())
	files["raft/wal/watermark"] = mark
	_, err = stateOf(t, files.clone())
	require.ErrorIs(t, err, ErrFileDamaged)
	files["raft/wal/segments"] = withoutMention(t, files["raft/wal/segments"])
	l, err = openMem(t, files)
	require.NoError(t, err)
	l.append(15, 15, 2, 50)
	require.NoError(t, l.Close())
	got, err := stateOf(t, l.files())
	require.NoError(t, err)
	require.Contains(t, got, "to 15,")
}

// failingWriter cannot open the last segment to write, as a disk with an error.
type failingWriter struct{ *memSegments }

func (failingWriter) OpenWriter(_, name string) (types.WritableFile, error) {
	return nil, errors.New("input/output error")
}

func (f failingWriter) OpenReader(dir, name string) (types.ReadableFile, error) {
	return f.memSegments.OpenReader(dir, name)
}

// A release without a watermark leaves torn appends behind the end of the log. The start that
// removes them may not come so far.
func TestRestsOfAnEarlierReleaseAreNoDamageAfterAStartThatFailed(t *testing.T) {
	now, _, name, from, to := usedMemLog(t)
	now["raft/wal/segments"] = withoutMention(t, now["raft/wal/segments"])
	want, err := stateOf(t, now.clone())
	require.NoError(t, err)
	copy(now[name][to+16:], now[name][from+8:from+40]) // of an append that was longer
	l := &memLog{t: t, segments: &memSegments{files: now.clone()}, records: vfs.NewMem()}
	require.NoError(t, l.records.MkdirAll("raft/wal", 0o700))
	for name, data := range now {
		if !strings.HasSuffix(name, ".wal") {
			put(t, l.records, name, data)
		}
	}
	_, err = Open("raft", Options{SegmentBytes: memSegmentBytes, Disk: &Disk{Segments: failingWriter{l.segments}, Records: l.records}, Fatal: func(error) {}})
	require.ErrorContains(t, err, "input/output error")
	for range 2 {
		l, err = openMem(t, l.files())
		require.NoError(t, err)
		got, err := l.state()
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NoError(t, l.Close())
	}
	require.Contains(t, string(l.files()["raft/wal/segments"]), `"watermark":true`)
}
