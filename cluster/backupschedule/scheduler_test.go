package backupschedule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tarry/cluster/backup"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/schedule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeNode is what a Scheduler knows of its node. Its clock is that of the test's bubble.
type fakeNode struct {
	t       *testing.T
	s       *Scheduler
	dir     string
	cluster string
	ahead   time.Duration // its clock
	store   string        // the id of its store

	mu      sync.Mutex
	leads   bool
	changed chan struct{}
	index   uint64
	fault   func(io.Writer) error // in place of a backup, if not nil
	others  func() ([]int64, bool)
}

func newFakeNode(t *testing.T, dir, spec string, keep int) *fakeNode {
	table, err := schedule.New(&jobpb.Schedule{Spec: spec, Zone: "UTC"}, 0)
	require.NoError(t, err)
	n := &fakeNode{t: t, dir: dir, cluster: "c1", changed: make(chan struct{}), index: 100, store: "store 1"}
	n.others = func() ([]int64, bool) { return nil, true }
	n.s = New(Config{
		Timetable: table, Dir: dir, Keep: keep, NodeID: "n1", Incarnation: "00000000000000aa",
		ClusterID: func() string { return n.cluster }, Leads: n.leader,
		Others: func() ([]int64, bool) { return n.others() },
		Now:    func() time.Time { return time.Now().Add(n.ahead) },
		Write:  n.write, BaseOf: baseOf, FullEvery: 1, Incremental: func() bool { return true }, DataDir: "/nowhere", LowWater: func() uint64 { return 0 },
		Logger: slog.New(slog.DiscardHandler),
	})
	return n
}

// run runs the Scheduler until the test, or the returned function, ends it.
func (n *fakeNode) run() (end func()) {
	ctx, cancel := context.WithCancel(n.t.Context())
	var work sync.WaitGroup
	work.Go(func() { n.s.Run(ctx) })
	end = func() {
		cancel()
		work.Wait()
	}
	n.t.Cleanup(end)
	return end
}

func (n *fakeNode) leader() (bool, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leads, n.changed
}

func (n *fakeNode) lead(leads bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leads = leads
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *fakeNode) fails(with func(io.Writer) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fault = with
}

func (n *fakeNode) write(_ context.Context, to io.Writer, base *Base) error {
	n.mu.Lock()
	fault := n.fault
	n.index++
	h := backup.Header{ClusterID: n.cluster, NodeID: n.s.cfg.NodeID, Index: n.index}
	store := n.store
	n.mu.Unlock()
	if fault != nil {
		return fault(to)
	}
	if base != nil && base.Store == store {
		h.BaseID, h.BaseName, h.BaseTakenMS = base.ID, base.Name, base.TakenMS
	}
	_, err := to.Write(backupWith(n.t, h, store))
	return err
}

// baseOf reads the id of the store, which is all of the state in a backup of a fakeNode.
func baseOf(r *backup.Reader, id, name string) (*job.BackupBase, error) {
	store, err := io.ReadAll(r)
	return &job.BackupBase{ID: id, Name: name, TakenMS: r.Header.TakenMS, Store: string(store)}, err
}

func backupOf(t *testing.T, cluster string, index uint64) []byte {
	return backupWith(t, backup.Header{ClusterID: cluster, Index: index}, "the state")
}

func backupWith(t *testing.T, h backup.Header, state string) []byte {
	var b bytes.Buffer
	h.Term, h.StateBytes, h.TakenMS = 1, int64(len(state)), time.Now().UnixMilli()
	w, err := backup.NewWriter(&b, h)
	require.NoError(t, err)
	_, err = io.WriteString(w, state)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func (n *fakeNode) trouble() string {
	_, trouble := n.s.State()
	return trouble
}

// files are the names in the directory.
func (n *fakeNode) files() (names []string) {
	entries, err := os.ReadDir(n.dir)
	require.NoError(n.t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// metric is the value of a metric.
func (n *fakeNode) metric(name string) float64 {
	n.t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(Collector(n.s))
	families, err := r.Gather()
	require.NoError(n.t, err)
	for _, f := range families {
		if f.GetName() == name {
			return f.Metric[0].GetGauge().GetValue() + f.Metric[0].GetCounter().GetValue()
		}
	}
	n.t.Fatal("no metric " + name)
	return 0
}

// pass lets time pass, in which the Scheduler does its work.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// The clock of a bubble begins at midnight of 2000-01-01 UTC.
func at(clock string, index int) string {
	return fmt.Sprintf("tarry-%sZ-%012d.backup", clock, index)
}

func TestBackupsFollowTheSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(t, filepath.Join(t.TempDir(), "backups"), "30 * * * *", 3)
		n.run()
		pass(10 * time.Minute)
		require.Empty(t, n.files(), "it does not lead")
		n.lead(true)
		pass(time.Minute)
		require.Equal(t, []string{at("19991231T233000", 101)}, n.files(), "of the last instant, at once")
		pass(time.Hour)
		require.Equal(t, []string{at("19991231T233000", 101), at("20000101T003000", 102)}, n.files())
		pass(3 * time.Hour)
		require.Equal(t, []string{at("20000101T013000", 103), at("20000101T023000", 104), at("20000101T033000", 105)}, n.files())
		require.Empty(t, n.trouble())
		require.EqualValues(t, 5, n.metric("tarry_backups_total"))
		require.EqualValues(t, 0, n.metric("tarry_backup_overdue_seconds"))
		require.EqualValues(t, 946697400, n.metric("tarry_backup_last_success_timestamp_seconds"))

		info, err := os.Stat(n.dir)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
		info, err = os.Stat(filepath.Join(n.dir, at("20000101T033000", 105)))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	})
}

func TestMissedInstantsAreMadeUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(t, t.TempDir(), "@every 1h", 100)
		n.lead(true)
		n.run()
		pass(time.Minute)
		n.lead(false)
		pass(5 * time.Hour)
		require.Len(t, n.files(), 1)
		n.lead(true)
		pass(time.Minute)
		require.Equal(t, []string{at("20000101T000000", 101), at("20000101T050000", 102)}, n.files())
		pass(time.Hour)
		require.Equal(t, at("20000101T060000", 103), n.files()[2])
	})
}

func TestTheNextLeaderGoesOn(t *testing.T) {
	first, second := at("20000101T000000", 101), at("20000101T010000", 102)
	again := at("20000101T010000", 101) // the first backup of the other fake node
	for _, c := range []struct {
		name          string
		shared, alive bool
		want, then    []string
	}{
		{"one directory", true, true, []string{first, second}, []string{first, second, at("20000101T020000", 101)}},
		{"one directory, the last leader is down", true, false, []string{first, second}, []string{first, second, at("20000101T020000", 101)}},
		{"a directory for each", false, true, nil, []string{at("20000101T020000", 101)}},
		{"a directory for each, the last leader is down", false, false, []string{again}, []string{again, at("20000101T020000", 102)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newFakeNode(t, t.TempDir(), "@every 1h", 100)
				b := newFakeNode(t, t.TempDir(), "@every 1h", 100)
				if c.shared {
					b = newFakeNode(t, a.dir, "@every 1h", 100)
				}
				b.s.at.(*directory).incarnation = "00000000000000bb" // or they remove each other's files
				heard := time.Now().Add(90*time.Minute + hearFor/2)
				b.others = func() ([]int64, bool) {
					if !c.alive || time.Now().Before(heard) {
						return nil, false
					}
					instant, _ := a.s.State()
					return []int64{instant}, true
				}
				a.lead(true)
				a.run()
				b.run()
				pass(90 * time.Minute)
				require.Len(t, a.files(), 2)
				a.lead(false)
				b.lead(true)
				pass(time.Minute)
				require.Equal(t, c.want, b.files())
				require.EqualValues(t, 0, b.metric("tarry_backup_overdue_seconds"))
				pass(30 * time.Minute)
				require.Equal(t, c.then, b.files())
			})
		})
	}
}

func TestTheFirstBackupOfAClusterWaitsForItsID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(t, t.TempDir(), "@every 1h", 7)
		named := time.Now().Add(hearFor / 2)
		n.s.cfg.ClusterID = func() string {
			if time.Now().Before(named) {
				return ""
			}
			return n.cluster
		}
		n.fails(func(io.Writer) error {
			require.Fail(t, "it began too early", "at %v", time.Now())
			return nil
		})
		n.lead(true)
		n.run()
		pass(hearFor/2 - time.Millisecond)
		n.fails(nil)
		pass(time.Second)
		require.Len(t, n.files(), 1)
	})
}

func TestAFailedBackupIsReportedAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(t, t.TempDir(), "@daily", 3)
		n.fails(func(to io.Writer) error {
			_, err := to.Write(make([]byte, 3*syncBytes))
			return errors.Join(err, errors.New("broken"))
		})
		n.lead(true)
		n.run()
		pass(time.Second)
		require.Equal(t, "n1 cannot make the scheduled backup of 2000-01-01T00:00:00Z: broken", n.trouble())
		require.Empty(t, n.files())
		require.EqualValues(t, 1, n.metric("tarry_backup_failing"))
		pass(30 * time.Minute) // tried again after 1, 3, 7 and 15 minutes
		require.EqualValues(t, 6, n.metric("tarry_backup_failures_total"))
		require.EqualValues(t, 1801, n.metric("tarry_backup_overdue_seconds"))
		n.fails(nil)
		pass(lastRetry)
		require.Empty(t, n.trouble())
		require.Len(t, n.files(), 1)
		require.EqualValues(t, 0, n.metric("tarry_backup_failing"))
		require.EqualValues(t, 0, n.metric("tarry_backup_overdue_seconds"))
	})
}

func TestABackupThatCannotBeReadBackGetsNoName(t *testing.T) {
	for name, spoil := range map[string]func([]byte) []byte{
		"cut":      func(b []byte) []byte { return b[:len(b)-1] },
		"changed":  func(b []byte) []byte { b[len(b)-60] ^= 1; return b },
		"longer":   func(b []byte) []byte { return append(b, 0) },
		"empty":    func([]byte) []byte { return nil },
		"stranger": func([]byte) []byte { return backupOf(t, "c2", 7) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newFakeNode(t, t.TempDir(), "@daily", 3)
				n.fails(func(to io.Writer) error {
					_, err := to.Write(spoil(backupOf(t, "c1", 9)))
					return err
				})
				n.lead(true)
				n.run()
				pass(time.Second)
				require.Contains(t, n.trouble(), "read it back: ")
				require.Empty(t, n.files())
			})
		})
	}
}

func TestADirectoryThatCannotBeUsedIsReportedBeforeThisNodeLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mount := filepath.Join(t.TempDir(), "missing")
		n := newFakeNode(t, filepath.Join(mount, "backups"), "@daily", 3)
		n.run()
		pass(time.Second)
		require.Contains(t, n.trouble(), "n1 cannot write scheduled backups: mkdir ")
		require.NoDirExists(t, mount, "where a mount is missing nothing is written")
		require.NoError(t, os.Mkdir(mount, 0o700))
		pass(lookEvery)
		require.Empty(t, n.trouble())
		require.Empty(t, n.files())
	})
}

func TestABackupThatIsMadeUpIsNotOverdueFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(t, t.TempDir(), "@daily", 3)
		pass(13 * time.Hour)
		n.fails(func(io.Writer) error { return errors.New("broken") })
		n.lead(true)
		n.run()
		pass(time.Second)
		require.EqualValues(t, 1, n.metric("tarry_backup_overdue_seconds"))
		pass(20 * time.Minute)
		require.EqualValues(t, 1201, n.metric("tarry_backup_overdue_seconds"))
	})
}

func TestABackupUnderWayEndsWithTheLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(t, t.TempDir(), "@daily", 3)
		n.s.cfg.Write = func(ctx context.Context, to io.Writer, _ *Base) error {
			_, err := to.Write([]byte("half"))
			require.NoError(t, err)
			<-ctx.Done()
			return ctx.Err()
		}
		n.lead(true)
		end := n.run()
		pass(time.Second)
		require.Len(t, n.files(), 1)
		n.lead(true) // the leader is set again: no reason to stop
		pass(time.Second)
		require.Len(t, n.files(), 1)
		n.lead(false)
		pass(time.Second)
		require.Empty(t, n.files())
		require.Empty(t, n.trouble(), "that is no failure")
		n.lead(true)
		pass(time.Second)
		require.Len(t, n.files(), 1)
		end()
		require.Empty(t, n.files())
	})
}

// touch makes a file that is so old.
func (n *fakeNode) touch(name string, data []byte, age time.Duration) {
	path := filepath.Join(n.dir, name)
	require.NoError(n.t, os.WriteFile(path, data, 0o600))
	require.NoError(n.t, os.Chtimes(path, time.Time{}, time.Now().Add(-age)))
}

func TestOnlyFilesOfItsOwnAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(t, t.TempDir(), "@every 1h", 1)
		others := []string{
			at("19990101T000000", 7), // of another cluster
			at("19990101T000000", 8), // its header has another index
			at("19990101T000000", 9), // damaged
			"monday.backup", "tarry-notes.txt", "monday.backup.123.partial",
			"tarry-19990101T000000Z.00000000000000bb.partial", // another node writes it
		}
		n.touch(others[0], backupOf(t, "c2", 7), time.Hour)
		n.touch(others[1], backupOf(t, "c1", 3), time.Hour)
		n.touch(others[2], []byte("TARRYBAK"), time.Hour)
		for _, name := range others[3:] {
			n.touch(name, nil, time.Hour)
		}
		require.NoError(t, os.Symlink(filepath.Join(n.dir, others[0]), filepath.Join(n.dir, at("19990101T000000", 10))))
		others = append(others, at("19990101T000000", 10))
		n.touch(at("19990101T000000", 5), backupOf(t, "c1", 5), time.Hour)
		n.touch(at("19990101T000000", 6), backupOf(t, "c1", 6), time.Hour)
		n.touch("tarry-19990101T000000Z.00000000000000aa.partial", nil, time.Minute) // of this node, before a crash
		n.touch("tarry-19990101T000000Z.00000000000000cc.partial", nil, 25*time.Hour)
		n.lead(true)
		n.run()
		pass(2 * time.Hour)
		want := append(others, at("20000101T020000", 103))
		slices.Sort(want)
		require.Equal(t, want, n.files())
	})
}

// Free space may be why fewer are to be kept.
func TestFewerAreKeptBeforeTheNextBackupIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(t, t.TempDir(), "@every 1h", 2)
		for i := 1; i <= 4; i++ {
			n.touch(at("19990101T000000", i), backupOf(t, "c1", uint64(i)), time.Hour)
		}
		n.fails(func(io.Writer) error { return errors.New("no space") })
		n.lead(true)
		n.run()
		pass(3 * time.Hour)
		require.Equal(t, []string{at("19990101T000000", 3), at("19990101T000000", 4)}, n.files())
	})
}

// A cluster whose disks were all set back has older backups with higher indexes.
func TestTheBackupJustMadeStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(t, t.TempDir(), "@every 1h", 1)
		n.touch(at("19990101T000000", 900), backupOf(t, "c1", 900), time.Hour)
		n.lead(true)
		n.run()
		pass(time.Minute)
		require.Equal(t, []string{at("19990101T000000", 900), at("20000101T000000", 101)}, n.files())
	})
}

func TestAClockThatWasAheadDoesNotKeepBackupsFromBeingMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(t, t.TempDir(), "@every 1h", 5)
		n.ahead = 365 * 24 * time.Hour
		n.lead(true)
		end := n.run()
		pass(time.Minute)
		end()
		require.Len(t, n.files(), 1)
		n.ahead = 0
		n.run()
		pass(time.Minute)
		require.Equal(t, at("20000101T000000", 102), n.files()[0])
		pass(time.Hour)
		require.Len(t, n.files(), 3)
	})
}

func TestABackupLeavesRoomForTheDataDirectory(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, room(dir, dir, 0))
	require.ErrorContains(t, room(dir, dir, 1<<60), "the data directory is on the same disk")
	require.NoError(t, room(dir, "/nowhere", 1<<60))
}

func TestReadingBackKeepsTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := &pacedReader{ctx: t.Context(), from: bytes.NewReader(make([]byte, 10_000)), rate: 1000, began: began}
		_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r, make([]byte, 1000))
		require.NoError(t, err)
		require.Equal(t, 10*time.Second, time.Since(began))
	})
}

// The listing shows each file of this cluster, also one that has been damaged since, which is
// none for the schedule.
func TestTheListingShowsWhatIsInTheDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(t, t.TempDir(), "@daily", 7)
		put := func(name string, b []byte) {
			require.NoError(t, os.WriteFile(filepath.Join(n.dir, name), b, 0o600))
		}
		whole := backupOf(t, "c1", 40)
		put(at("19991230T000000", 40), whole)
		put(at("19991229T000000", 40), whole[:len(whole)-1])
		put(at("19991228T000000", 30), []byte("TARRYBAK"))
		put(at("19991227T000000", 20), backupOf(t, "c2", 20))
		put("tarry-19991226T000000Z.00000000000000bb.partial", whole)
		n.run()
		pass(time.Second)
		l := n.s.Listing()
		require.Empty(t, l.Error)
		require.Len(t, l.Files, 3)
		id, err := backup.ReadID(bytes.NewReader(whole), int64(len(whole)))
		require.NoError(t, err)
		require.Equal(t, File{Name: at("19991230T000000", 40), Instant: 946512000000, Index: 40, Taken: time.UnixMilli(946684800000), Bytes: int64(len(whole)), ID: id}, l.Files[0])
		require.Contains(t, l.Files[1].Problem, "does not have the end")
		require.Contains(t, l.Files[2].Problem, "ends early")
		require.EqualValues(t, 30, l.Files[2].Index)
		require.True(t, l.Files[2].Taken.IsZero())

		n.lead(true)
		pass(time.Second)
		require.Equal(t, at("20000101T000000", 101), n.s.Listing().Files[0].Name, "at once")
		require.NoError(t, os.RemoveAll(n.dir))
		pass(lookEvery)
		l = n.s.Listing()
		require.Empty(t, l.Files)
		require.Contains(t, l.Error, "n1 cannot list its scheduled backups: ")
	})
}

func TestTheListingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(t, t.TempDir(), "@daily", 7)
		for i := range listed + 3 {
			require.NoError(t, os.WriteFile(filepath.Join(n.dir, at("19991230T000000", i)), []byte("x"), 0o600))
		}
		n.run()
		pass(time.Second)
		l := n.s.Listing()
		require.Len(t, l.Files, listed)
		require.Equal(t, 3, l.More)
		require.EqualValues(t, listed+2, l.Files[0].Index)
	})
}
