package statemachine

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/fsm"
	"tarry/job/jobpb"
	"tarry/job/oplog"
)

var voters = raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "n0", Address: "n0"}}})

// logEntries are entries of a log whose first is a configuration.
func logEntries(t *testing.T, first, last, term uint64) (logs []*raft.Log) {
	for i := first; i <= last; i++ {
		l := &raft.Log{Index: i, Term: term, Type: raft.LogCommand}
		var err error
		l.Data, err = oplog.AppendOp(oplog.AppendEntryHeader(nil, int64(i)), &jobpb.Op{Kind: &jobpb.Op_Add{Add: &jobpb.Add{Topic: "t", TtrMs: 1}}})
		require.NoError(t, err)
		if i == 1 {
			l.Type, l.Data = raft.LogConfiguration, voters
		}
		logs = append(logs, l)
	}
	return logs
}

// The rows are the positions that a machine's state and its log can have after a crash.
func TestStartWithEveryPositionOfStateAndLog(t *testing.T) {
	const term = 2
	tests := map[string]struct {
		state       uint64 // 0: fresh
		stateTerm   uint64 // of its last entry
		first, last uint64 // of the log; 0: empty
		votes       uint64 // the term they have come to; 0: lost
		dropped     bool
		refused     string
	}{
		"fresh":                              {},
		"fresh, log from its beginning":      {first: 1, last: 9, votes: 2},
		"fresh, log truncated":               {first: 5, last: 9, votes: 3, refused: "ends with entry 0, but the log begins with entry 5"},
		"state within the log":               {state: 6, first: 3, last: 9, votes: 3},
		"state at the log's end":             {state: 9, first: 3, last: 9, votes: 3},
		"state just before the log":          {state: 2, first: 3, last: 9, votes: 3},
		"state further behind the log":       {state: 2, first: 4, last: 9, votes: 3, refused: "ends with entry 2, but the log begins with entry 4"},
		"state alone":                        {state: 9, votes: 2},
		"state beyond the log":               {state: 12, first: 3, last: 9, votes: 3, dropped: true},
		"state contradicts the log":          {state: 6, stateTerm: 3, first: 3, last: 9, votes: 3, dropped: true},
		"state contradicts the log's end":    {state: 9, stateTerm: 3, first: 3, last: 9, votes: 3, dropped: true},
		"state just before, of another term": {state: 2, stateTerm: 1, first: 3, last: 9, votes: 3},
		"votes lost":                         {state: 6, first: 3, last: 9, refused: "votes have come to term 0"},
		"votes lost, state alone":            {state: 6, refused: "votes have come to term 0"},
		"votes older than the log":           {first: 1, last: 9, votes: 1, refused: "votes have come to term 1"},
		"votes older than the state":         {state: 9, stateTerm: 3, first: 3, last: 9, votes: 2, refused: "hold entries of term 3"},
		"votes alone":                        {votes: 4},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, "n0")
			n.open()
			if tt.state > 0 {
				entries := logEntries(t, 1, tt.state, term)
				if tt.stateTerm != 0 {
					entries[len(entries)-1].Term = tt.stateTerm
				}
				New(n.machine, Options{Fatal: n.fatal}).ApplyBatch(entries)
				require.Equal(t, tt.state, n.machine.Applied().Index)
			}
			if tt.last > 0 {
				require.NoError(t, n.stores.Log.StoreLogs(logEntries(t, tt.first, tt.last, term)))
			}
			if tt.votes > 0 {
				require.NoError(t, n.stores.Stable.SetUint64([]byte(keyTerm), tt.votes))
			}
			err := CheckStart(n.machine, n.stores.Log, n.stores.Stable)
			if tt.refused != "" {
				require.ErrorIs(t, err, ErrUntrustedData)
				require.ErrorContains(t, err, tt.refused)
				n.closeDisks()
				return
			}
			require.NoError(t, err)
			last, err := n.stores.Log.LastIndex()
			require.NoError(t, err)
			require.Equal(t, tt.dropped, tt.last > 0 && last == 0)
			n.closeDisks()

			// Raft continues from there: it leads, and the index grows.
			n.start()
			defer n.stop()
			if tt.state == 0 && tt.last == 0 {
				return
			}
			l := group{n}.leader(t)
			r, err := l.add("next")
			require.NoError(t, err)
			require.Equal(t, jobpb.Code_OK, r.Code)
			if tt.dropped {
				tt.last = 0
			}
			require.Greater(t, n.machine.Applied().Index, max(tt.state, tt.last))
			require.NotEmpty(t, n.digest())
		})
	}
}

func TestStartRefusesAStateWithoutConfiguration(t *testing.T) {
	n := newNode(t, "n0")
	n.open()
	defer n.closeDisks()
	New(n.machine, Options{Fatal: n.fatal}).ApplyBatch(logEntries(t, 2, 3, 1))
	require.ErrorContains(t, CheckStart(n.machine, n.stores.Log, n.stores.Stable), "no Raft configuration")
}

func TestEntryThatCannotBeAppliedIsFatal(t *testing.T) {
	n := newNode(t, "n0")
	n.open()
	defer n.closeDisks()
	var reported []error
	a := New(n.machine, Options{Fatal: func(err error) { reported = append(reported, err) }})
	responses := a.ApplyBatch([]*raft.Log{{Index: 1, Term: 1, Data: []byte{99}}})
	require.Len(t, responses, 1)
	require.Empty(t, responses[0].([]*jobpb.Result))
	require.Len(t, reported, 1)
	require.ErrorContains(t, reported[0], "log entries 1 to 1")
	require.ErrorContains(t, reported[0], "upgrade this node")
}

// source is a machine to take snapshots of, with entries up to index applied.
func source(t *testing.T, index, term uint64) *Adapter {
	n := newNode(t, "source")
	n.open()
	t.Cleanup(n.closeDisks)
	a := New(n.machine, Options{Fatal: n.fatal})
	a.ApplyBatch(logEntries(t, 1, index, term))
	return a
}

// send streams the state of from into a sink of to.
func send(t *testing.T, from, to *Adapter) raft.SnapshotSink {
	list, err := from.Snapshots().List()
	require.NoError(t, err)
	require.Len(t, list, 1)
	meta, body, err := from.Snapshots().Open(list[0].ID)
	require.NoError(t, err)
	defer body.Close()
	s, err := to.Snapshots().Create(1, meta.Index, meta.Term, meta.Configuration, meta.ConfigurationIndex, nil)
	require.NoError(t, err)
	n, err := io.Copy(s, body)
	require.NoError(t, err)
	require.Equal(t, meta.Size, n, "the size is known in advance")
	return s
}

func TestASnapshotAfterWhichRaftCannotContinueEndsTheProcess(t *testing.T) {
	tests := map[string]struct {
		last, term uint64 // of the log's end
		fatal      bool
	}{
		"log ends before":                 {5, 2, false},
		"log ends with the same entry":    {8, 2, false},
		"log ends with another entry":     {8, 1, true},
		"log goes on beyond the snapshot": {9, 2, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			from := source(t, 8, 2)
			n := newNode(t, "n0")
			n.open()
			require.NoError(t, n.stores.Log.StoreLogs(logEntries(t, 1, tt.last, tt.term)))
			var reported []error
			changed := 0
			to := New(n.machine, Options{
				Log: n.stores.Log, Fatal: func(err error) { reported = append(reported, err) },
				OnChanges: func(c fsm.Changes) { changed++; require.Len(t, c.Topics, 1) },
			})
			s := send(t, from, to)
			require.NoError(t, s.Close())
			meta, rc, err := to.Snapshots().Open(s.ID())
			require.NoError(t, err)
			require.EqualValues(t, 8, meta.Index)
			err = to.Restore(rc)
			require.NoError(t, rc.Close())
			require.EqualValues(t, 8, n.machine.Applied().Index)
			require.Equal(t, tt.fatal, err != nil)
			if tt.fatal {
				require.Len(t, reported, 1)
				require.ErrorContains(t, reported[0], "must restart")
				require.NoError(t, n.stores.Stable.SetUint64([]byte(keyTerm), 2))
				require.NoError(t, CheckStart(n.machine, n.stores.Log, n.stores.Stable), "which helps")
			} else {
				require.Empty(t, reported)
				require.Equal(t, 1, changed)
			}
			n.closeDisks()
		})
	}
}

func TestASnapshotThatTheStateHasPassedIsRefused(t *testing.T) {
	type entry struct{ index, term uint64 }
	tests := map[string]struct {
		state, snapshot entry
		refused         bool
	}{
		"older":                          {state: entry{9, 2}, snapshot: entry{8, 2}, refused: true},
		"of an older term":               {state: entry{9, 2}, snapshot: entry{8, 1}, refused: true},
		"of an older term, at its index": {state: entry{8, 2}, snapshot: entry{8, 1}, refused: true},
		"older, though of a newer term":  {state: entry{9, 1}, snapshot: entry{8, 2}, refused: true},
		"the same":                       {state: entry{8, 2}, snapshot: entry{8, 2}},
		"newer":                          {state: entry{7, 1}, snapshot: entry{8, 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			from := source(t, tt.snapshot.index, tt.snapshot.term)
			n := newNode(t, "n0")
			n.open()
			defer n.closeDisks()
			var fatal error
			to := New(n.machine, Options{Fatal: func(err error) { fatal = err }})
			to.ApplyBatch(logEntries(t, 1, tt.state.index, tt.state.term))
			before := n.machine.Applied()

			s := send(t, from, to)
			require.NoError(t, s.Close())
			_, rc, err := to.Snapshots().Open(s.ID())
			require.NoError(t, err)
			err = to.Restore(rc)
			require.NoError(t, rc.Close())
			require.NoError(t, fatal)
			if tt.refused {
				require.ErrorContains(t, err, "older than the state")
				require.Equal(t, before, n.machine.Applied())
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.snapshot.index, n.machine.Applied().Index)
		})
	}
}

func TestSnapshotsThatAreNotInstalledLeaveNothing(t *testing.T) {
	from := source(t, 8, 2)
	n := newNode(t, "n0")
	n.open()
	defer n.closeDisks()
	to := New(n.machine, Options{Fatal: n.fatal})

	require.NoError(t, send(t, from, to).Cancel())
	cut, err := to.Snapshots().Create(1, 8, 2, raft.Configuration{}, 1, nil)
	require.NoError(t, err)
	_, err = cut.Write([]byte("TARRYSNP"))
	require.NoError(t, err)
	require.ErrorContains(t, cut.Close(), "ended early")
	empty, err := to.Snapshots().Create(1, 8, 2, raft.Configuration{}, 1, nil)
	require.NoError(t, err)
	require.ErrorContains(t, empty.Close(), "empty")

	unopened := send(t, from, to)
	require.NoError(t, unopened.Close())
	next := send(t, from, to)
	require.NoError(t, next.Close())
	_, _, err = to.Snapshots().Open(unopened.ID())
	require.Error(t, err)
	_, rc, err := to.Snapshots().Open(next.ID())
	require.NoError(t, err)
	require.NoError(t, rc.Close())

	require.ErrorContains(t, to.Restore(io.NopCloser(nil)), "not received from a leader")
	list, err := to.Snapshots().List()
	require.NoError(t, err)
	require.Empty(t, list, "a fresh machine has none")
	names, err := n.fs.List("state")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"CURRENT", "gen-000001"}, names)
}

func TestFailedMarkDurableIsFatal(t *testing.T) {
	n := newNode(t, "n0")
	n.open()
	var reported []error
	a := New(n.machine, Options{Fatal: func(err error) { reported = append(reported, err) }})
	s, err := a.Snapshots().Create(1, 5, 1, raft.Configuration{}, 1, nil)
	require.NoError(t, err)
	snapshot, err := a.Snapshot()
	require.NoError(t, err)
	n.closeDisks()
	err = snapshot.Persist(s)
	require.Error(t, err)
	require.Len(t, reported, 1)
	require.True(t, errors.Is(reported[0], err))
}

// A leader that cannot read its own state cannot send it to a follower, and Raft would retry
// indefinitely.
func TestStateThatIsDamagedWhenItIsToBeSentIsFatal(t *testing.T) {
	n := newNode(t, "n0")
	n.open()
	var reported []error
	a := New(n.machine, Options{Fatal: func(err error) { reported = append(reported, err) }})
	a.ApplyBatch(logEntries(t, 1, 8, 2))
	_, body, err := a.Snapshots().Open(stateID)
	require.NoError(t, err)
	require.NoError(t, body.Close())
	names, err := n.fs.List("state/gen-000001")
	require.NoError(t, err)
	for _, name := range names {
		if !strings.HasPrefix(name, "MANIFEST-") {
			continue
		}
		// In place: the store keeps using the open file.
		f, err := n.fs.OpenReadWrite("state/gen-000001/"+name, vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		_, err = f.WriteAt(bytes.Repeat([]byte{0xff}, 3), 30)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	_, _, err = a.Snapshots().Open(stateID)
	require.Error(t, err)
	require.Len(t, reported, 1, "%v", err)
	require.True(t, fsm.Damaged(reported[0]), "%v", reported[0])
	n.closeDisks()
}

// cutLog is a log whose end was lost up to before its first index.
type cutLog struct{ raft.LogStore }

func (cutLog) FirstIndex() (uint64, error) { return 7, nil }
func (cutLog) LastIndex() (uint64, error)  { return 3, nil }

func TestStartRefusesALogWithoutItsEnd(t *testing.T) {
	n := newNode(t, "n0")
	n.open()
	defer n.closeDisks()
	New(n.machine, Options{Fatal: n.fatal}).ApplyBatch(logEntries(t, 1, 8, 1))
	err := CheckStart(n.machine, cutLog{n.stores.Log}, n.stores.Stable)
	require.ErrorIs(t, err, ErrUntrustedData)
	require.ErrorContains(t, err, "its end is lost")
}
