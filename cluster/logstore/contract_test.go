package logstore

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// kinds are all kinds of log.
var kinds = []Kind{RaftWAL, RaftBoltDB}

// forEachKind runs a test on fresh directories, each with one kind of log.
func forEachKind(t *testing.T, test func(t *testing.T, c *contract)) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			c := &contract{t: t, kind: kind, dir: t.TempDir()}
			c.open()
			t.Cleanup(func() {
				if c.Stores != nil {
					require.NoError(t, c.Close())
				}
			})
			test(t, c)
		})
	}
}

// contract is a log of some kind under test.
type contract struct {
	*Stores
	t    *testing.T
	kind Kind
	dir  string
}

func (c *contract) open() {
	s, err := Open(c.dir, Options{Kind: c.kind, SegmentBytes: smallSegment, Fatal: func(err error) { c.t.Errorf("fatal: %v", err) }})
	require.NoError(c.t, err)
	c.Stores = s
}

func (c *contract) reopen() {
	require.NoError(c.t, c.Close())
	c.open()
}

// content returns the data of entry i of a term.
func content(i, term uint64, size int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "%d/%d ", i, term), size/8+1)
}

func (c *contract) append(first, last, term uint64, size int) {
	c.t.Helper()
	var es []*raft.Log
	for i := first; i <= last; i++ {
		es = append(es, &raft.Log{Index: i, Term: term, Type: raft.LogCommand, Data: content(i, term, size)})
	}
	require.NoError(c.t, c.Log.StoreLogs(es))
}

// holds requires that the log goes from first to last; both are 0 for an empty one.
func (c *contract) holds(first, last uint64) {
	c.t.Helper()
	got, err := c.Log.FirstIndex()
	require.NoError(c.t, err)
	require.Equal(c.t, first, got, "first")
	got, err = c.Log.LastIndex()
	require.NoError(c.t, err)
	require.Equal(c.t, last, got, "last")
	var e raft.Log
	require.ErrorIs(c.t, c.Log.GetLog(last+1, &e), raft.ErrLogNotFound)
	if first == 0 {
		require.ErrorIs(c.t, c.Log.GetLog(1, &e), raft.ErrLogNotFound)
	}
}

func (c *contract) entries(first, last, term uint64, size int) {
	c.t.Helper()
	for i := max(first, 1); i <= last; i++ {
		var e raft.Log
		require.NoError(c.t, c.Log.GetLog(i, &e), "entry %d", i)
		require.Equal(c.t, []any{i, term, raft.LogCommand}, []any{e.Index, e.Term, e.Type})
		require.Equal(c.t, content(i, term, size), e.Data, "entry %d", i)
		require.Empty(c.t, e.Extensions)
	}
}

func TestLogKeepsWhatIsAppended(t *testing.T) {
	forEachKind(t, func(t *testing.T, c *contract) {
		c.holds(0, 0)
		require.True(t, c.Log.(raft.MonotonicLogStore).IsMonotonic())
		require.NoError(t, c.Log.StoreLogs(nil))
		c.append(1, 10, 1, 100)
		for i := uint64(11); i <= 300; i++ {
			c.append(i, i, 1, 100)
		}
		for range 2 {
			c.holds(1, 300)
			c.entries(1, 300, 1, 100)
			c.reopen()
		}
	})
}

func TestLogIsDeletedFromEitherEnd(t *testing.T) {
	forEachKind(t, func(t *testing.T, c *contract) {
		c.append(1, 500, 1, 100)
		check := func(first, last uint64) {
			for range 2 {
				c.holds(first, last)
				c.entries(first, last, 1, 100)
				c.reopen()
			}
		}
		require.NoError(t, c.Log.DeleteRange(1, 120)) // as after a snapshot
		check(121, 500)
		require.NoError(t, c.Log.DeleteRange(1, 121)) // from before its start
		check(122, 500)
		require.NoError(t, c.Log.DeleteRange(401, 500)) // as after a conflict
		check(122, 400)
		require.NoError(t, c.Log.DeleteRange(400, 999)) // beyond its end
		check(122, 399)
		for _, none := range [][2]uint64{{1, 121}, {400, 500}, {300, 299}} {
			require.NoError(t, c.Log.DeleteRange(none[0], none[1]))
		}
		check(122, 399)
		require.NoError(t, c.Log.DeleteRange(100, 1000)) // as for a snapshot from the leader
		check(0, 0)
		c.append(9000, 9010, 1, 100)
		check(9000, 9010)
	})
}

// A follower truncates the end of its log when a new leader replaces its last entries.
// After that raft-wal v0.4.0 could not open the log again (its issue 31).
func TestEntriesAreReplacedAfterAConflict(t *testing.T) {
	forEachKind(t, func(t *testing.T, c *contract) {
		c.append(1, 20, 1, 50)
		require.NoError(t, c.Log.DeleteRange(15, 20))
		c.reopen()
		c.append(15, 18, 2, 50)
		require.NoError(t, c.Log.DeleteRange(17, 18))
		c.append(17, 25, 3, 50)
		for range 2 {
			c.holds(1, 25)
			c.entries(1, 14, 1, 50)
			c.entries(15, 16, 2, 50)
			c.entries(17, 25, 3, 50)
			c.reopen()
		}
	})
}

func TestLogHoldsLargeEntries(t *testing.T) {
	forEachKind(t, func(t *testing.T, c *contract) {
		for i, size := range []int{4 << 10, 1 << 20, 3<<20 + 7, 100, 20 << 20} {
			c.append(uint64(i+1), uint64(i+1), 1, size)
		}
		c.append(6, 25, 1, 300<<10)
		c.reopen()
		for i, size := range []int{4 << 10, 1 << 20, 3<<20 + 7, 100, 20 << 20} {
			c.entries(uint64(i+1), uint64(i+1), 1, size)
		}
		c.entries(6, 25, 1, 300<<10)
	})
}

// Raft never does this. A gap or an overwritten entry would mean that it has a wrong view
// of the log.
func TestLogRefusesWhatWouldLeaveAGap(t *testing.T) {
	for name, wrong := range map[string]func(raft.LogStore) error{
		"a gap":            func(l raft.LogStore) error { return l.StoreLogs(entries(12, 13, 10)) },
		"a gap in a batch": func(l raft.LogStore) error { return l.StoreLogs(append(entries(11, 11, 10), entries(13, 13, 10)...)) },
		"an entry again":   func(l raft.LogStore) error { return l.StoreLogs(entries(10, 10, 10)) },
		"a hole":           func(l raft.LogStore) error { return l.DeleteRange(4, 6) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range kinds {
				dir, fatal := t.TempDir(), 0
				s, err := Open(dir, Options{Kind: kind, Fatal: func(error) { fatal++ }})
				require.NoError(t, err)
				require.NoError(t, s.Log.StoreLogs(entries(1, 10, 10)))
				require.Error(t, wrong(s.Log), kind)
				require.Equal(t, 1, fatal)
				require.Error(t, s.Log.StoreLogs(entries(11, 11, 10)), "it has stopped")
				require.NoError(t, s.Close())
				s, err = Open(dir, Options{Kind: kind, Fatal: func(error) { fatal++ }})
				require.NoError(t, err)
				last, err := s.Log.LastIndex()
				require.NoError(t, err)
				require.EqualValues(t, 10, last)
				require.NoError(t, s.Close())
			}
		})
	}
}

func TestClosedStoresFailWithoutACallOfFatal(t *testing.T) {
	forEachKind(t, func(t *testing.T, c *contract) {
		c.append(1, 3, 1, 10)
		s := c.Stores
		c.Stores = nil
		require.NoError(t, s.Close())
		require.ErrorIs(t, s.Log.StoreLogs(entries(4, 4, 1)), ErrClosed)
		require.ErrorIs(t, s.Log.DeleteRange(1, 1), ErrClosed)
		require.ErrorIs(t, s.Log.GetLog(1, new(raft.Log)), ErrClosed)
		_, err := s.Stable.Get([]byte("x"))
		require.ErrorIs(t, err, ErrClosed)
	})
}

// A second process would overwrite the meta pages of the first.
func TestAStoreIsOpenOnce(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{Kind: RaftBoltDB, Fatal: func(err error) { t.Error(err) }})
	require.NoError(t, err)
	_, err = Open(dir, Options{Kind: RaftBoltDB, Fatal: func(err error) { t.Error(err) }})
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, s.Close())
}

// If there are votes, Raft has run on a log. It is damage if the log is gone, or if it is
// opened as another kind, which would not find it.
func TestALostLogBesideVotesIsDetected(t *testing.T) {
	for _, kind := range kinds {
		for _, damage := range []string{"gone", "opened as another kind"} {
			t.Run(string(kind)+" "+damage, func(t *testing.T) {
				c := &contract{t: t, kind: kind, dir: t.TempDir()}
				c.open()
				require.NoError(t, c.Stable.SetUint64([]byte(keyTerm), 1))
				c.append(1, 5, 1, 10)
				require.NoError(t, c.Close())
				then := kind
				if damage == "gone" {
					for _, name := range []string{logDir, boltFile, markFile} {
						require.NoError(t, os.RemoveAll(filepath.Join(c.dir, name)))
					}
				} else {
					then = kinds[1-slices.Index(kinds, kind)]
				}
				_, err := Open(c.dir, Options{Kind: then, Fatal: func(err error) { t.Errorf("fatal: %v", err) }})
				require.ErrorIs(t, err, ErrFileDamaged)
			})
		}
	}
}
