package cluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	goflag "flag" // the package has a flag of its own
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"tarry/cluster/datadir"
	"tarry/cluster/diskspace"
	"tarry/cluster/logstore"
	"tarry/fsm/check"
)

var (
	damageFlips = goflag.Int("damage.flips", 0, "more bits to flip in each file, at places drawn")
	damageSeed  = goflag.Uint64("damage.seed", 1, "for the places of -damage.flips")
)

// A fileKind is a kind of file below a data directory. If there are several, the first or
// the last by name is damaged.
type fileKind struct {
	name, pattern string
	first         bool
}

const raftDir = "shard-0/raft/"

// logKinds are those of the log itself.
func logKinds(store logstore.Kind) []fileKind {
	if store == logstore.RaftBoltDB {
		return []fileKind{
			{name: "identity", pattern: "node.json"},
			{name: "log", pattern: raftDir + "raft.db"},
			{name: "watermark of the log", pattern: raftDir + "raft.db.watermark"},
		}
	}
	return []fileKind{
		{name: "log, its first segment", pattern: raftDir + "wal/*.wal", first: true},
		{name: "log, its last segment", pattern: raftDir + "wal/*.wal"},
		{name: "list of segments", pattern: raftDir + "wal/segments"},
		{name: "watermark of the log", pattern: raftDir + "wal/watermark"},
	}
}

func otherKinds() []fileKind {
	const gen = "shard-0/fsm/gen-000001/"
	return []fileKind{
		{name: "lock", pattern: "lock"},
		{name: "identity", pattern: "node.json"},
		{name: "votes", pattern: raftDir + "votes"},
		{name: "owner of the log", pattern: raftDir + "owner"},
		{name: "owner of the state", pattern: "shard-0/fsm/owner"},
		{name: "generation", pattern: "shard-0/fsm/CURRENT"},
		{name: "manifest", pattern: gen + "MANIFEST-*"},
		{name: "marker of the manifest", pattern: gen + "marker.manifest.*"},
		{name: "marker of the format", pattern: gen + "marker.format-version.*"},
		{name: "options", pattern: gen + "OPTIONS-*"},
		{name: "lock of the state", pattern: gen + "LOCK"},
		{name: "length of the manifest", pattern: gen + "LOGS"},
		{name: "the state's log, empty", pattern: gen + "*.log"},
		{name: "table, the first", pattern: gen + "*.sst", first: true},
		{name: "table, the last", pattern: gen + "*.sst"},
	}
}

// damages are the kinds of damage to a file, except older copies. Each returns the damaged
// content, or false if it would not differ.
func damages() []damage {
	list := []damage{
		flipAt("early", func(used int) int { return 0 }),
		flipAt("in the middle", func(used int) int { return used / 2 }),
		flipAt("late", func(used int) int { return used - 1 }),
		{"half of it", func(data []byte) ([]byte, bool) { return data[:usedOf(data)/2], len(data) > 0 }},
		{"empty", func(data []byte) ([]byte, bool) { return nil, len(data) > 0 }},
		{"gone", func([]byte) ([]byte, bool) { return nil, true }},
		{"longer", func(data []byte) ([]byte, bool) {
			return append(slices.Clone(data), bytes.Repeat([]byte("garbage!"), 700)...), true
		}},
	}
	rng := rand.New(rand.NewPCG(*damageSeed, 0))
	for i := range *damageFlips {
		share := rng.Float64()
		list = append(list, flipAt(fmt.Sprintf("drawn %d", i), func(used int) int { return int(share * float64(used)) }))
	}
	return list
}

type damage struct {
	name string
	do   func(data []byte) ([]byte, bool)
}

func flipAt(where string, place func(used int) int) damage {
	return damage{"a bit " + where, func(data []byte) ([]byte, bool) {
		used := usedOf(data)
		if used == 0 {
			return nil, false
		}
		bad := slices.Clone(data)
		at := place(used)
		bad[at] ^= 1 << (at % 8)
		return bad, true
	}}
}

// usedOf returns the length without the zeros at the end: files are preallocated.
func usedOf(data []byte) int { return len(bytes.TrimRight(data, "\x00")) }

// usedDirectory returns the data directory of a node that ran for a while and was killed,
// with several files of each kind that can have several, and three older copies of it:
// from the last start but one, from the last, and from a moment before the kill.
func usedDirectory(t *testing.T, store logstore.Kind) (now string, olds []string) {
	c := newTunedCluster(t, 1, func(_ int, cfg *Config) {
		cfg.LogStore = store
		cfg.files = smallFiles
		cfg.DiskLowWater = diskspace.Bytes(1 << 10) // a small ballast: the directory is copied more than a hundred times
	})
	jobs := 0
	work := func(n int) {
		c.leader()
		for range n {
			jobs++
			id := fmt.Sprint("job-", jobs)
			op := add(id, "t", 0)
			op.GetAdd().Body = bytes.Repeat([]byte(id), 1000)
			do(t, c.nodes[0], op)
			if jobs%5 == 0 {
				do(t, c.nodes[0], finish(reserveOne(t, c.nodes[0], 0, "t")[0]))
			}
		}
	}
	shorten := func() {
		require.NoError(t, c.nodes[0].shard.reloadRaft(func(c *raft.ReloadableConfig) { c.TrailingLogs = 40 }))
		require.NoError(t, c.nodes[0].shard.raft.Snapshot().Error())
	}
	copied := func() string { return copyOf(t, c.cfgs[0].DataDir) }
	work(120)
	shorten()
	olds = append(olds, copied())
	work(60)
	c.stop(0)
	c.start(0)
	work(20)
	olds = append(olds, copied())
	work(40)
	shorten()
	work(57)
	olds = append(olds, copied())
	work(3)
	now = copied()
	c.stop(0)
	return now, olds
}

// durableState is what a node must not lose.
type durableState struct {
	Entries         map[uint64]string // of the log: their content
	Term, VotedTerm uint64
	Voted           string
	Digests         map[uint64]string // of the state at entries, from where it begins on
}

// at is the last entry of the state, with the log applied.
func (st *durableState) at() uint64 { return slices.Max(slices.Collect(maps.Keys(st.Digests))) }

// damagedDir, in the environment, makes this process the node of that directory.
const damagedDir = "TARRY_TEST_DAMAGED_DIR"

// durableStateOf runs a node on a data directory, in a process of its own, because
// a node may end its process at any point. The error is what it printed when it ended.
func durableStateOf(t *testing.T, dir string) (st durableState, err error) {
	c := exec.Command(os.Args[0], "-test.run", "^TestReadDurableState$", "-test.timeout", "2m")
	c.Env = append(os.Environ(), damagedDir+"="+dir)
	said, err := c.CombinedOutput()
	if err != nil {
		var ended *exec.ExitError
		require.ErrorAs(t, err, &ended)
		require.Equal(t, 3, ended.ExitCode(), "the process crashed: %s", said)
		return st, errors.New(string(said))
	}
	found, err := os.ReadFile(dir + ".json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(found, &st))
	return st, nil
}

// TestReadDurableState is the process of durableStateOf.
func TestReadDurableState(t *testing.T) {
	dir := os.Getenv(damagedDir)
	if dir == "" {
		t.Skip("it runs as a process of TestEveryDamageToEveryFile")
	}
	end := func(err error) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	st, err := readDurableState(Config{NodeID: "n1", DataDir: dir, Logger: slog.New(slog.DiscardHandler), Fatal: end, files: smallFiles})
	if err != nil {
		end(err)
	}
	found, err := json.Marshal(st)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dir+".json", found, 0o600))
}

var smallFiles = files{segmentBytes: 64 << 10, memTableBytes: 256 << 10}

// fatalHost is the host of a shard that is opened and not started.
type fatalHost struct {
	Host
	fatal func(error)
}

func (h fatalHost) Fatal(err error) { h.fatal(err) }

// readDurableState opens a node's shard as far as its files go, applies the log as Raft
// would, and reads everything.
func readDurableState(cfg Config) (st durableState, err error) {
	data, err := datadir.Open(cfg.DataDir, cfg.NodeID, "")
	if err != nil {
		return st, err
	}
	s, err := openShard(shardConfig{
		Timing: DefaultTiming(), ServerID: data.ServerID(), NodeID: cfg.NodeID, Dir: data.Shard(0), LogStore: data.LogStore(),
		Logger: cfg.Logger, Registry: prometheus.NewRegistry(), files: cfg.files, Host: fatalHost{fatal: cfg.Fatal},
	})
	if err != nil {
		return st, err
	}
	if err := st.read(s); err != nil {
		return st, fmt.Errorf("a failure that would not have ended the process: %w", err)
	}
	return st, errors.Join(s.stop(), data.Close())
}

func (st *durableState) read(s *Shard) error {
	first, err := s.stores.Log.FirstIndex()
	if err != nil {
		return err
	}
	last, err := s.stores.Log.LastIndex()
	if err != nil {
		return err
	}
	st.Entries, st.Digests = map[uint64]string{}, map[uint64]string{}
	if err := st.digest(s, s.machine.Applied().Index); err != nil {
		return err
	}
	for i := first; i <= last && i > 0; i++ {
		var e raft.Log
		if err := s.stores.Log.GetLog(i, &e); err != nil {
			return err
		}
		st.Entries[i] = fmt.Sprintf("%d %v %x", e.Term, e.Type, sha256.Sum256(e.Data))
		if i <= s.machine.Applied().Index {
			continue
		}
		if e.Type == raft.LogCommand || e.Type == raft.LogConfiguration {
			s.adapter.ApplyBatch([]*raft.Log{&e})
		}
		if err := st.digest(s, i); err != nil {
			return err
		}
	}
	return st.readVotes(s.stores.Stable)
}

func (st *durableState) digest(s *Shard, at uint64) (err error) {
	v := s.machine.View()
	defer v.Close()
	if err := check.Records(v, nil); err != nil {
		return err
	}
	st.Digests[at], err = check.Digest(v, nil)
	return err
}

func (st *durableState) readVotes(votes raft.StableStore) (err error) {
	if st.Term, err = votes.GetUint64([]byte("CurrentTerm")); err != nil {
		return err
	}
	if st.VotedTerm, err = votes.GetUint64([]byte("LastVoteTerm")); err != nil {
		return err
	}
	voted, err := votes.Get([]byte("LastVoteCand"))
	st.Voted = string(voted)
	return err
}

// A node with a file that was damaged while it did not run refuses to start and says how to
// recover, or has its whole durable state.
func TestEveryDamageToEveryFile(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts more than a hundred processes")
	}
	t.Run("raft-wal", func(t *testing.T) {
		known := append(logKinds(logstore.RaftWAL), otherKinds()...)
		damageEach(t, logstore.RaftWAL, known, known)
	})
	t.Run("raft-boltdb", func(t *testing.T) { // the other files are as with raft-wal
		log := logKinds(logstore.RaftBoltDB)
		damageEach(t, logstore.RaftBoltDB, log, append(log, otherKinds()...))
	})
}

// damageEach damages files of some kinds of a directory with a log store, and requires
// that there are files of known kinds only.
func damageEach(t *testing.T, store logstore.Kind, kinds, known []fileKind) {
	whole, olds := usedDirectory(t, store)
	want, err := durableStateOf(t, copyOf(t, whole))
	require.NoError(t, err)

	seen := map[string]bool{"ballast": true}
	for _, kind := range known {
		for _, f := range filesOf(t, whole, kind) {
			seen[f] = true
		}
	}
	for name := range filesBelow(t, whole) {
		require.True(t, seen[name], "%s is of a kind that this test does not know", name)
	}
	for _, kind := range kinds {
		files := filesOf(t, whole, kind)
		file := files[len(files)-1]
		if kind.first {
			require.Greater(t, len(files), 1, kind.name)
			file = files[0]
		}
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			damageOne(t, whole, kind, file, olds, want)
		})
	}
}

// filesOf are the files of a kind below dir, in the order of their names.
func filesOf(t *testing.T, dir string, kind fileKind) (names []string) {
	files, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(kind.pattern)))
	require.NoError(t, err)
	require.NotEmpty(t, files, kind.name)
	for _, f := range files {
		names = append(names, nameIn(dir, f))
	}
	slices.Sort(names)
	return names
}

func damageOne(t *testing.T, whole string, kind fileKind, name string, olds []string, want durableState) {
	data, err := os.ReadFile(filepath.Join(whole, name))
	require.NoError(t, err)
	list := damages()
	for i, old := range olds {
		before, err := os.ReadFile(filepath.Join(old, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		require.NoError(t, err)
		list = append(list, damage{fmt.Sprint("older copy ", i), func(data []byte) ([]byte, bool) { return before, !bytes.Equal(data, before) }})
	}
	for _, d := range list {
		bad, ok := d.do(data)
		if !ok {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			dir := copyOf(t, whole)
			path := filepath.Join(dir, name)
			require.NoError(t, os.Remove(path))
			if d.name != "gone" {
				require.NoError(t, os.WriteFile(path, bad, 0o640))
			}
			got, err := durableStateOf(t, dir)
			if err != nil {
				t.Logf("refused: %v", err)
				require.ErrorContains(t, err, "move ")
				require.ErrorContains(t, err, "rejoin")
				return
			}
			got.compare(t, want)
		})
	}
}

// compare fails the test if something was lost or changed. What is in the state need not be
// in the log any more.
func (st durableState) compare(t *testing.T, want durableState) {
	require.Equal(t, []any{want.Term, want.VotedTerm, want.Voted}, []any{st.Term, st.VotedTerm, st.Voted}, "votes")
	for i, e := range st.Entries {
		require.Equal(t, want.Entries[i], e, "entry %d", i)
	}
	require.Equal(t, want.at(), st.at(), "the last entry")
	require.Equal(t, want.Digests[want.at()], st.Digests[want.at()], "state")
	t.Logf("starts, with the state at entry %d, and %d entries in the log", want.at(), len(st.Entries))
}

// The node with the damage may not elect itself with an older one, and cut the log of the only
// node that has all.
func TestDamageWhileAnotherNodeIsDownIsRefused(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(*testing.T, string){
		"a bit early in the log": func(t *testing.T, segment string) {
			data, err := os.ReadFile(segment)
			require.NoError(t, err)
			data[36] ^= 1 << 6
			require.NoError(t, os.WriteFile(segment, data, 0o640))
		},
		"the end of the log": func(t *testing.T, segment string) {
			data, err := os.ReadFile(segment)
			require.NoError(t, err)
			clear(data[usedOf(data)*3/4:])
			require.NoError(t, os.WriteFile(segment, data, 0o640))
		},
		"the log is gone": func(t *testing.T, segment string) { require.NoError(t, os.Remove(segment)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTestCluster(t, 3)
			good := c.leader()
			old, bad := (good+1)%3, (good+2)%3
			do(t, c.nodes[good], add("seen by all", "t", 0))
			c.stop(old)
			for i := range 40 {
				do(t, c.nodes[c.leader()], add(fmt.Sprint("acknowledged-", i), "t", 0))
			}
			c.stop(good)
			c.stop(bad)
			segments := filesOf(t, c.cfgs[bad].DataDir, fileKind{name: "log", pattern: raftDir + "wal/*.wal"})
			damage(t, filepath.Join(c.cfgs[bad].DataDir, segments[len(segments)-1]))

			c.start(old)
			_, err := Start(c.cfgs[bad])
			require.ErrorIs(t, err, logstore.ErrFileDamaged)
			require.ErrorContains(t, err, "move "+c.cfgs[bad].DataDir+" away")

			c.start(good) // with the old one it is a majority
			c.eventually(func() bool {
				for _, i := range []int{good, old} {
					v := c.nodes[i].shard.machine.View()
					_, found, err := v.Job("acknowledged-39")
					v.Close()
					if err != nil || !found {
						return false
					}
				}
				return true
			}, "nothing is lost")
		})
	}
}

func copyOf(t *testing.T, dir string) string {
	to := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

func nameIn(dir, file string) string {
	name, err := filepath.Rel(dir, file)
	if err != nil {
		panic(err)
	}
	return filepath.ToSlash(name)
}

func filesBelow(t *testing.T, dir string) map[string]bool {
	names := map[string]bool{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names[path] = true
		}
		return err
	}))
	return names
}
