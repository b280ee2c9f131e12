package recovery

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/datadir"
	"tarry/job/jobpb"
)

// leftNode makes a node of a cluster of five, with a log of which the first applied entries are
// in its state. configurations are entries that are one.
func leftNode(t *testing.T, applied, last uint64, configurations ...uint64) (path string) {
	t.Helper()
	return newStores(t, func(s *stores, serverID string) {
		var voters raft.Configuration
		for i, id := range []string{serverID, "n2.x", "n3.x", "n4.x", "n5.x"} {
			voters.Servers = append(voters.Servers, raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(fmt.Sprint("127.0.0.1:", 7001+i))})
		}
		log := []*raft.Log{
			{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(voters)},
			entry(t, 2, &jobpb.Op{Kind: &jobpb.Op_SetCluster{SetCluster: &jobpb.SetCluster{ClusterId: "old"}}}),
		}
		for i := uint64(3); i <= last; i++ {
			log = append(log, addEntry(t, i))
		}
		for _, i := range configurations {
			log[i-1] = &raft.Log{Index: i, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(voters)}
		}
		require.NoError(t, s.log.Log.StoreLogs(log))
		require.NoError(t, setTerm(s.log.Stable, 1))
		s.applyTo(t, log[:applied])
	})
}

func inspect(t *testing.T, path string) *Held {
	t.Helper()
	h, err := Inspect(path)
	require.NoError(t, err)
	return &h
}

// peersOf makes the peers file of two nodes. Both are called n1 in their directories.
func peersOf(t *testing.T, source, other string) *Peers {
	t.Helper()
	a, b := PeerOf(inspect(t, source)), PeerOf(inspect(t, other))
	p := &Peers{Version: PeersVersion, ClusterID: "old", Nodes: []Peer{a, b}}
	require.Equal(t, a.ServerID, p.Source())
	return p
}

// logOf returns the bounds of a stopped node's log.
func logOf(t *testing.T, path string) (first, last uint64) {
	t.Helper()
	dir, s, err := openStopped(path, false)
	require.NoError(t, err)
	first, err = s.log.Log.FirstIndex()
	require.NoError(t, err)
	last, err = s.log.Log.LastIndex()
	require.NoError(t, err)
	require.NoError(t, s.close())
	require.NoError(t, dir.Close())
	return first, last
}

func TestTheSourceGoesOnWithItsWholeLogAndTheOthersWithTheirs(t *testing.T) {
	source, other := leftNode(t, 5, 20), leftNode(t, 8, 12)
	p := peersOf(t, source, other)
	require.Equal(t, p.NewClusterID(), (&Peers{Version: 1, ClusterID: "old", Nodes: []Peer{p.Nodes[1], p.Nodes[0]}}).NewClusterID())

	done, err := RecoverPeers(t.Context(), source, p)
	require.NoError(t, err)
	require.EqualValues(t, 18, done.Counts.Jobs())
	h := inspect(t, source)
	require.Equal(t, p.NewClusterID(), h.ClusterID)
	require.EqualValues(t, 21, h.AppliedIndex)
	require.EqualValues(t, 2, h.LastTerm)
	require.Equal(t, 2, h.Voters())
	first, last := logOf(t, source)
	require.EqualValues(t, 8, first, "who joins without data gets the state")
	require.EqualValues(t, 21, last)

	done, err = RecoverPeers(t.Context(), other, p)
	require.NoError(t, err)
	require.EqualValues(t, 6, done.Counts.Jobs(), "what it has not applied may not be in the new cluster's log")
	h = inspect(t, other)
	require.Equal(t, p.NewClusterID(), h.ClusterID)
	require.EqualValues(t, 8, h.AppliedIndex)
	require.EqualValues(t, 12, h.LastIndex)
	require.EqualValues(t, 1, h.LastTerm)
	require.Equal(t, 1, h.Voters(), "until it hears the source")
	for _, m := range h.Members {
		require.Equal(t, m.ServerID == p.Source(), m.Voter)
	}
	for _, path := range []string{source, other} {
		require.NoError(t, startsIn(path))
		_, err := RecoverPeers(t.Context(), path, p)
		require.ErrorContains(t, err, "has been recovered with this peers file already")
	}
}

// A configuration of the old cluster behind the other's state must not reach it, and one in its
// own log must not come into force.
func TestOldConfigurationsDoNotComeBack(t *testing.T) {
	source, other := leftNode(t, 5, 20, 15), leftNode(t, 8, 12, 10)
	p := peersOf(t, source, other)
	_, err := RecoverPeers(t.Context(), source, p)
	require.NoError(t, err)
	_, last := logOf(t, source)
	require.Zero(t, last, "the others get the whole state")
	require.EqualValues(t, 21, inspect(t, source).AppliedIndex)
	_, err = RecoverPeers(t.Context(), other, p)
	require.NoError(t, err)
	require.EqualValues(t, 9, inspect(t, other).LastIndex)
}

func TestAnInterruptedRecoveryWithPeersIsRunAgain(t *testing.T) {
	other := leftNode(t, 8, 12)
	for ends := 0; ; ends++ {
		source := leftNode(t, 5, 3*recoverBatch+10)
		p := peersOf(t, source, other)
		_, err := RecoverPeers(&endsAfter{t.Context(), ends}, source, p)
		if err == nil {
			require.Greater(t, ends, 3)
			return
		}
		if ends > 0 {
			require.ErrorContains(t, startsIn(source), "was interrupted")
		}
		done, err := RecoverPeers(t.Context(), source, p)
		require.NoError(t, err)
		require.EqualValues(t, 3*recoverBatch+8, done.Counts.Jobs())
		require.NoError(t, startsIn(source))
	}
}

// failingAppend is a log to which nothing can be appended.
type failingAppend struct{ raft.LogStore }

func (failingAppend) StoreLogs([]*raft.Log) error { return errors.New("no more entries") }

// The log is cut where the other nodes are, and the source's state may be further behind on its disk.
func TestTheSourcesLogIsCutOnlyWhenItsStateIsOnDisk(t *testing.T) {
	source, other := leftNode(t, 5, 20), leftNode(t, 8, 12)
	p := peersOf(t, source, other)
	dir, s, err := openStopped(source, false)
	require.NoError(t, err)
	require.NoError(t, dir.BeginRecovery())
	log := s.log.Log
	s.log.Log = failingAppend{log}
	require.ErrorContains(t, s.becomeSource(t.Context(), p), "no more entries")
	var killed string
	require.Eventually(t, func() bool { // a copy may lack a table that the store removes meanwhile
		killed = filepath.Join(t.TempDir(), "data")
		if os.CopyFS(killed, os.DirFS(source)) != nil {
			return false
		}
		_, err := Inspect(killed)
		return err == nil
	}, 20*time.Second, 50*time.Millisecond)
	s.log.Log = log
	require.NoError(t, s.close())
	require.NoError(t, dir.Close())

	first, _ := logOf(t, killed)
	require.EqualValues(t, 8, first)
	done, err := RecoverPeers(t.Context(), killed, p)
	require.NoError(t, err)
	require.EqualValues(t, 18, done.Counts.Jobs())
}

// A crash may come after each step that the disk keeps.
func TestARecoveryWithPeersGoesOnAfterACrash(t *testing.T) {
	source, other := leftNode(t, 5, 20), leftNode(t, 8, 12)
	p := peersOf(t, source, other)
	dir, s, err := openStopped(source, false)
	require.NoError(t, err)
	require.NoError(t, dir.BeginRecovery())
	require.NoError(t, s.applyLog(t.Context()))
	require.NoError(t, setTerm(s.log.Stable, p.term()))
	require.NoError(t, s.log.Log.StoreLogs([]*raft.Log{{Index: 21, Term: p.term(), Type: raft.LogConfiguration, Data: p.configuration(true)}}))
	require.NoError(t, s.close())
	require.NoError(t, dir.Close())
	_, err = RecoverPeers(t.Context(), source, p)
	require.NoError(t, err)
	require.EqualValues(t, 21, inspect(t, source).AppliedIndex)

	for _, path := range []string{source, other} { // before its last step
		_, err = RecoverPeers(t.Context(), path, p)
		if path == other {
			require.NoError(t, err)
		}
		dir, err := datadir.OpenStopped(path)
		require.NoError(t, err)
		require.NoError(t, dir.BeginRecovery())
		require.NoError(t, dir.Close())
		_, err = RecoverPeers(t.Context(), path, p)
		require.NoError(t, err)
		require.NoError(t, startsIn(path))
	}
}

func TestAPeersFileThatDoesNotFitIsRefused(t *testing.T) {
	source, other := leftNode(t, 5, 20), leftNode(t, 8, 12)
	for name, c := range map[string]struct {
		change func(p *Peers)
		says   string
	}{
		"another node":          {func(p *Peers) { p.Nodes[0].ServerID = "n1.feed" }, "does not have this node, n1."},
		"another cluster":       {func(p *Peers) { p.ClusterID = "else" }, "the peers file is for cluster else"},
		"a log that has grown":  {func(p *Peers) { p.Nodes[0].LastIndex = 19 }, "has changed since the peers file was made"},
		"a newer term":          {func(p *Peers) { p.Nodes[0].LastTerm, p.Nodes[0].VoteTerm = 2, 2 }, "has changed since"},
		"a state that is ahead": {func(p *Peers) { p.Nodes[0].AppliedIndex = 4 }, "has changed since"},
	} {
		t.Run(name, func(t *testing.T) {
			p := peersOf(t, source, other)
			before := inspect(t, source)
			c.change(p)
			_, err := RecoverPeers(t.Context(), source, p)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, before, inspect(t, source), "nothing has changed")
			require.NoError(t, startsIn(source))
		})
	}
}

func TestPeersFilesAreChecked(t *testing.T) {
	const good = `{"version":1,"cluster_id":"c","nodes":[` +
		`{"server_id":"n4.a","address":"h4:7301","applied_index":5,"last_index":9,"last_term":2,"vote_term":3},` +
		`{"server_id":"n5.b","address":"h5:7301","applied_index":6,"last_index":8,"last_term":2,"vote_term":2}]}`
	p, err := ReadPeers(strings.NewReader(good))
	require.NoError(t, err)
	require.Equal(t, "n4.a", p.Source())
	require.EqualValues(t, 4, p.term())
	text, err := p.Encode()
	require.NoError(t, err)
	again, err := ReadPeers(strings.NewReader(string(text)))
	require.NoError(t, err)
	require.Equal(t, p, again)
	for change, says := range map[[2]string]string{
		{`{"version":1`, `[`}:                      "is not JSON",
		{`"version":1`, `"version":2`}:             "has version 2, and this release knows version 1",
		{`"version":1`, `"version":1,"x":1`}:       "unknown",
		{`"c"`, `""`}:                              "cluster_id is empty",
		{`"n4.a"`, `"n4"`}:                         "nodes[0].server_id is",
		{`"n4.a"`, `"n5.a"`}:                       "there are two nodes n5",
		{`"h4:7301"`, `"h4"`}:                      "nodes[0].address is",
		{`"applied_index":5`, `"applied_index":0`}: "nodes[0]: applied_index 0",
		{`"last_index":9`, `"last_index":4`}:       "nodes[0]: applied_index 5, last_index 4",
	} {
		_, err := ReadPeers(strings.NewReader(strings.Replace(good, change[0], change[1], 1)))
		require.ErrorContains(t, err, says)
	}
	_, err = ReadPeers(strings.NewReader(strings.Repeat(" ", maxPeersFile) + good))
	require.ErrorContains(t, err, "more than 1048576 bytes")
}

func TestWhichNodesMakeAPeersFile(t *testing.T) {
	member := func(id string) Member { return Member{ServerID: id, Address: id + ":7301", Voter: true} }
	held := func(id string, last uint64) Held {
		return Held{
			ServerID: id, ClusterID: "c", AppliedIndex: 5, LastIndex: last, LastTerm: 2, VoteTerm: 2,
			Members: []Member{member("n1.a"), member("n2.a"), member("n3.a"), member("n4.a"), member("n5.a")},
		}
	}
	p, err := NewPeers([]Held{held("n4.a", 8), held("n5.a", 9)})
	require.NoError(t, err)
	require.Equal(t, "n5.a", p.Source())
	require.Equal(t, "n4.a:7301", p.Nodes[0].Address)
	_, err = NewPeers([]Held{held("n3.a", 7), held("n4.a", 8), held("n5.a", 9)})
	require.ErrorContains(t, err, "3 of the 5 voters are left, and they are a majority")
	_, err = NewPeers([]Held{held("n5.a", 9)})
	require.ErrorContains(t, err, "--as-only-voter")
	stranger := held("n4.a", 8)
	stranger.ClusterID = "d"
	_, err = NewPeers([]Held{held("n5.a", 9), stranger})
	require.ErrorContains(t, err, `n4.a is of cluster "d", and n5.a of cluster "c"`)
	half := held("n4.a", 8)
	half.Interrupted = true
	_, err = NewPeers([]Held{held("n5.a", 9), half})
	require.ErrorContains(t, err, "has begun and not ended")
}
