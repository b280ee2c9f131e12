package membership

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/cluster/membership/gossip"
	"tarry/cluster/membership/gossipkeys"
	"tarry/cluster/membership/memberpb"
	"tarry/cluster/report"
	"tarry/job"
)

// gossipKeys reads the node's file, as a start of the process does.
func (n *node) gossipKeys() *gossipkeys.Ring {
	if n.keysFile == "" {
		return nil
	}
	ring, err := gossipkeys.Open(n.keysFile)
	require.NoError(n.cluster.t, err)
	return ring
}

// giveKeys gives nodes the same keys, each in a file of its own.
func (w *testCluster) giveKeys(k gossipkeys.Keys, nodes ...*node) {
	for _, n := range nodes {
		n.keysFile = filepath.Join(w.t.TempDir(), "gossip.keys")
		require.NoError(w.t, gossipkeys.Create(n.keysFile, k))
	}
}

func oneKey() gossipkeys.Keys { return gossipkeys.Keys{List: []gossipkeys.Key{gossipkeys.New()}} }

// ringInFile lists the fingerprints in a node's file.
func (n *node) ringInFile() []string {
	k, err := gossipkeys.Read(n.keysFile)
	require.NoError(n.cluster.t, err)
	return k.Fingerprints()
}

// current waits until so many members have the keys of the leader, and returns them.
func (n *node) current(members int) (k *report.Keyring) {
	t := n.cluster.t
	t.Helper()
	eventually(t, fmt.Sprintf("%d members have the leader's keys", members), func() bool {
		var err error
		k, err = n.Keyring(context.Background())
		return err == nil && k.Current() == members
	})
	return k
}

// change changes the gossip keys, and waits until so many members have them. It tries again
// while there is no leader, or a member is late with its reply.
func (n *node) change(members int, what report.KeyringChange, key string) (k *report.Keyring) {
	t := n.cluster.t
	t.Helper()
	var changed string
	var failed error
	eventually(t, "the keys change", func() bool {
		k, err := n.ChangeKeyring(context.Background(), what, key)
		changed, failed = k.GetChanged(), err
		return err == nil || code(err) != job.CodeNotApplied && !strings.Contains(err.Error(), "does not reply")
	})
	require.NoError(t, failed)
	k = n.current(members)
	k.Changed = changed
	return k
}

// refuses waits until a change is refused for a reason.
func (n *node) refuses(what report.KeyringChange, key string, want job.Code, reason string) {
	t := n.cluster.t
	t.Helper()
	eventually(t, "refused: "+reason, func() bool {
		_, err := n.ChangeKeyring(context.Background(), what, key)
		return code(err) == want && strings.Contains(err.Error(), reason)
	})
}

func TestKeysAreReplacedWhileNodesGossip(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	nodes := w.trio()
	first := oneKey()
	w.giveKeys(first, nodes...)
	for _, n := range nodes {
		n.start()
	}
	w.voters("n1", "n2", "n3")
	old := first.List[0].Fingerprint()
	require.Equal(t, []string{old}, nodes[1].current(3).GetRing().GetFingerprints())

	k := nodes[1].change(3, report.KeyringChange_INSTALL, "")
	next := k.Changed
	require.NotEqual(t, old, next)
	require.Equal(t, []string{old, next}, k.GetRing().GetFingerprints())
	nodes[2].refuses(report.KeyringChange_REMOVE, old, job.CodeConflict, "encrypts now")
	nodes[2].refuses(report.KeyringChange_USE, "0123", job.CodeNotFound, "tarry keyring list")

	require.Equal(t, []string{next, old}, nodes[2].change(3, report.KeyringChange_USE, next).GetRing().GetFingerprints())
	k = nodes[0].change(3, report.KeyringChange_REMOVE, old)
	require.Equal(t, []string{next}, k.GetRing().GetFingerprints())
	require.EqualValues(t, 3, k.Ring.Revision)
	for _, n := range nodes {
		require.Equal(t, []string{next}, n.ringInFile())
	}

	// The ring outlives the process.
	nodes[0].stop()
	nodes[0].start()
	w.voters("n1", "n2", "n3")
	require.Equal(t, []string{next}, nodes[0].cfg.GossipKeys.Keys().Fingerprints())
	for _, n := range nodes {
		for _, line := range n.log.with() {
			require.NotContains(t, line, first.List[0].Secret())
		}
	}
}

func TestANodeThatWasAwayFetchesTheKeys(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	nodes := w.trio()
	w.giveKeys(oneKey(), nodes...)
	for _, n := range nodes {
		n.start()
	}
	w.voters("n1", "n2", "n3")
	away := nodes[2]
	if away.leads() {
		away = nodes[0]
	}
	away.stop()

	k := w.leader().change(2, report.KeyringChange_INSTALL, "")
	k = w.leader().change(2, report.KeyringChange_USE, k.Changed)
	w.leader().refuses(report.KeyringChange_REMOVE, k.GetRing().GetFingerprints()[1], job.CodeConflict, away.id+": it does not reply")

	away.start() // its only key decrypts nothing that the others send
	w.voters("n1", "n2", "n3")
	require.Equal(t, k.GetRing().GetFingerprints(), away.ringInFile())
	w.leader().change(3, report.KeyringChange_REMOVE, k.GetRing().GetFingerprints()[1])
}

func TestKeysDoNotTravelInPlainText(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	n1, n2 := w.node("n1", 2), w.node("n2", 2)
	n1.join, n2.join = []string{n2.gossipAddr()}, []string{n1.gossipAddr()}
	w.giveKeys(oneKey(), n1, n2)
	n1.plainCalls, n2.plainCalls = true, true
	n1.start()
	n2.start()
	w.voters("n1", "n2")
	for _, n := range []*node{n1, n2} {
		n.current(2) // fingerprints may travel
		n.refuses(report.KeyringChange_INSTALL, "", job.CodeConflict, "--cluster-tls-mode=require")
		_, err := (&server{m: n.Membership}).FetchKeys(context.Background(), nil)
		require.ErrorContains(t, err, "plain text")
		resp, err := (&server{m: n.Membership}).AdoptKeys(context.Background(), keysToPB(gossipkeys.Keys{Revision: 9, List: oneKey().List}))
		require.NoError(t, err)
		require.Contains(t, resp.Error, "plain text")
		require.Zero(t, resp.Ring.Revision)
	}
}

func TestWithoutKeysNothingIsChanged(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	n := w.node("n1", 1)
	n.start()
	w.voters("n1")
	require.Empty(t, n.current(1).GetRing().GetFingerprints())
	n.refuses(report.KeyringChange_INSTALL, "", job.CodeConflict, "--gossip-keys-file")
}

func TestAnotherPrimaryIsAReasonOfHealth(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	n1, n2 := w.node("n1", 2), w.node("n2", 2)
	n1.join, n2.join = []string{n2.gossipAddr()}, []string{n1.gossipAddr()}
	k := gossipkeys.Keys{List: []gossipkeys.Key{gossipkeys.New(), gossipkeys.New()}}
	w.giveKeys(k, n1)
	w.giveKeys(gossipkeys.Keys{List: []gossipkeys.Key{k.List[1], k.List[0]}}, n2)
	n1.start()
	n2.start()
	w.voters("n1", "n2")
	eventually(t, "health tells", func() bool { return n1.reports("encrypts gossip with key") })
	// Using the key again brings all of them in line.
	n1.change(2, report.KeyringChange_USE, k.List[0].Fingerprint())
	eventually(t, "health is silent", func() bool { return !n1.reports("encrypts gossip with key") })
}

// Two leaders may make a ring each with one revision, for instance when the first is replaced
// while it changes the keys.
func TestTwoRingsOfOneRevisionConverge(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	n1, n2 := w.node("n1", 2), w.node("n2", 2)
	n1.join, n2.join = []string{n2.gossipAddr()}, []string{n1.gossipAddr()}
	shared := gossipkeys.New()
	w.giveKeys(gossipkeys.Keys{Revision: 5, List: []gossipkeys.Key{shared, gossipkeys.New()}}, n1)
	w.giveKeys(gossipkeys.Keys{Revision: 5, List: []gossipkeys.Key{shared, gossipkeys.New()}}, n2)
	n1.start()
	n2.start()
	w.voters("n1", "n2")
	n1.current(2)
	require.Equal(t, n1.ringInFile(), n2.ringInFile())
}

func TestOtherListsAreAReasonOfHealth(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	n1, n2 := w.node("n1", 2), w.node("n2", 2)
	n1.join, n2.join = []string{n2.gossipAddr()}, []string{n1.gossipAddr()}
	k := gossipkeys.Keys{List: []gossipkeys.Key{gossipkeys.New(), gossipkeys.New()}}
	w.giveKeys(k, n1)
	w.giveKeys(gossipkeys.Keys{List: k.List[:1]}, n2) // by hand, which nothing undoes by itself
	n1.start()
	n2.start()
	w.voters("n1", "n2")
	eventually(t, "health tells", func() bool { return n1.reports("has other gossip keys than the leader") })
	n1.change(2, report.KeyringChange_USE, k.List[0].Fingerprint())
	eventually(t, "health is silent", func() bool { return !n1.reports("gossip keys") })
}

func TestFetchesThatFailArePacedAndLoggedOnce(t *testing.T) {
	var f fetches
	now := time.Unix(1000, 0)
	broken := errors.New("read-only file system")
	require.True(t, f.due(now))
	require.True(t, f.ended(3, broken, now))
	for _, pause := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 240, 240} {
		require.False(t, f.due(now.Add(pause*time.Second-1)))
		now = now.Add(pause * time.Second)
		require.True(t, f.due(now))
		require.False(t, f.ended(3, broken, now), "the same again")
	}
	require.True(t, f.ended(4, broken, now), "another revision")
	require.True(t, f.ended(4, errors.New("no space left"), now), "another error")
	require.False(t, f.ended(5, nil, now))
	require.True(t, f.due(now))
	require.True(t, f.ended(5, broken, now))
	require.False(t, f.due(now))
	require.True(t, f.due(now.Add(fetchPause)), "the pause begins anew")
}

func TestAMemberThatIsAliveButSilentIsNamed(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	nodes := w.trio()
	w.giveKeys(oneKey(), nodes...)
	for _, n := range nodes {
		n.start()
	}
	w.voters("n1", "n2", "n3")
	silent := nodes[0]
	if silent.leads() {
		silent = nodes[1]
	}
	silent.grpc.Stop() // Raft and gossip have ports of their own here
	eventually(t, "the reply names the member", func() bool {
		k, err := w.leader().ChangeKeyring(context.Background(), report.KeyringChange_INSTALL, "")
		return err == nil && slices.ContainsFunc(k.Nodes, func(n *report.NodeRing) bool {
			return n.Id == silent.id && strings.Contains(n.Error, "it is alive but did not reply in time")
		})
	})
}

func TestKeysOfAFormerLeaderComeTooLate(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	n := w.node("n1", 1)
	w.giveKeys(oneKey(), n)
	n.start()
	w.voters("n1")
	before, late := n.ringInFile(), gossipkeys.Keys{Revision: 9, Term: n.raft.CurrentTerm() - 1, List: oneKey().List}
	resp, err := (&server{m: n.Membership}).AdoptKeys(context.Background(), keysToPB(late))
	require.NoError(t, err)
	require.Contains(t, resp.Error, "a later leader")
	require.Equal(t, before, n.ringInFile())

	late.Term++
	resp, err = (&server{m: n.Membership}).AdoptKeys(context.Background(), keysToPB(late))
	require.NoError(t, err)
	require.Empty(t, resp.Error)
	require.Equal(t, late.Fingerprints(), n.ringInFile())
}

// A cluster moves to encrypted gossip one node at a time, and takes in a node meanwhile.
func TestTheMoveToEncryptedGossip(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t)
	nodes := w.startTrio()
	k := oneKey()
	for i, step := range []gossip.Verify{gossip.VerifyOff, gossip.VerifyOutgoing, gossip.VerifyFull} {
		for at, n := range nodes {
			n.stop()
			n.verify = step
			if n.keysFile == "" {
				w.giveKeys(k, n)
			}
			n.start()
			if i == 1 && at == 0 {
				joiner := w.node("n4", 0, nodes[1].gossipAddr())
				joiner.verify = gossip.VerifyOutgoing
				w.giveKeys(k, joiner)
				joiner.start()
				nodes = append(nodes, joiner)
			}
			ids := []string{"n1", "n2", "n3"}
			if len(nodes) == 4 {
				ids = append(ids, "n4")
			}
			w.voters(ids...)
		}
	}
	stranger := w.node("n5", 0, nodes[0].gossipAddr())
	stranger.start()
	eventually(t, "the stranger logs the reason", func() bool { return len(stranger.log.with("its keys differ")) > 0 })
	w.voters("n1", "n2", "n3", "n4")
}

func TestWhichRingComesNext(t *testing.T) {
	a, b := gossipkeys.New(), gossipkeys.New()
	full := gossipkeys.Keys{Revision: 4}
	for range gossipkeys.MaxKeys {
		full.List = append(full.List, gossipkeys.New())
	}
	now := gossipkeys.Keys{Revision: 4, List: []gossipkeys.Key{a, b}}
	last := gossipkeys.Keys{Revision: 1<<64 - 1, List: now.List}
	has := func(id string, keys ...gossipkeys.Key) *report.NodeRing {
		return &report.NodeRing{Id: id, Ring: &report.RingState{Revision: 4, Fingerprints: gossipkeys.Keys{List: keys}.Fingerprints()}}
	}
	silent := &report.NodeRing{Id: "n3", Error: "it does not reply"}
	const install, use, remove = report.KeyringChange_INSTALL, report.KeyringChange_USE, report.KeyringChange_REMOVE
	for name, c := range map[string]struct {
		now    gossipkeys.Keys
		change report.KeyringChange
		key    gossipkeys.Key
		rings  []*report.NodeRing
		want   []gossipkeys.Key
		err    string
	}{
		"use the other":                 {now, use, b, []*report.NodeRing{has("n1", a, b), has("n2", a, b)}, []gossipkeys.Key{b, a}, ""},
		"use while one is away":         {now, use, b, []*report.NodeRing{has("n1", a, b), silent}, []gossipkeys.Key{b, a}, ""},
		"use what one lacks":            {now, use, b, []*report.NodeRing{has("n1", a, b), has("n2", a)}, nil, "n2 has " + a.Fingerprint()},
		"use what one without keys has": {now, use, b, []*report.NodeRing{has("n1", a, b), has("n2")}, nil, "n2 has no keys"},
		"use the primary again":         {now, use, a, []*report.NodeRing{has("n1", a, b), has("n2", b, a)}, []gossipkeys.Key{a, b}, ""},
		"remove":                        {now, remove, b, []*report.NodeRing{has("n1", a, b), has("n2", a)}, []gossipkeys.Key{a}, ""},
		"remove the primary":            {now, remove, a, nil, nil, "encrypts now"},
		"remove what one uses":          {now, remove, b, []*report.NodeRing{has("n1", a, b), has("n2", b, a)}, nil, "all members encrypt with " + a.Fingerprint()},
		"remove while one is away":      {now, remove, b, []*report.NodeRing{has("n1", a, b), silent}, nil, "n3: it does not reply"},
		"an unknown key":                {now, remove, gossipkeys.Key{}, nil, nil, "tarry keyring list"},
		"an unknown change":             {now, 77, a, nil, nil, "does not know"},
		"one too many":                  {full, install, a, nil, nil, "there are 8 gossip keys"},
		"the last revision":             {last, install, a, nil, nil, "the last revision"},
	} {
		t.Run(name, func(t *testing.T) {
			next, changed, err := nextRing(c.now, &memberpb.ChangeKeyringRequest{Change: c.change, Fingerprint: c.key.Fingerprint()}, c.rings)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, gossipkeys.Keys{Revision: 5, List: c.want}, next)
			require.Equal(t, c.key.Fingerprint(), changed)
		})
	}
	require.Equal(t, []gossipkeys.Key{a, b}, now.List, "the ring in use is not touched")
}

func FuzzKeysOfANode(f *testing.F) {
	f.Add(uint64(1), []byte(strings.Repeat("a", gossipkeys.KeyBytes)), []byte(nil))
	f.Fuzz(func(t *testing.T, revision uint64, a, b []byte) {
		k, err := keysFromPB(&memberpb.GossipKeys{Revision: revision, Keys: [][]byte{a, b}})
		if err != nil {
			require.ErrorIs(t, err, errBadKeys)
			return
		}
		back, err := keysFromPB(keysToPB(k))
		require.NoError(t, err)
		require.Equal(t, k, back)
	})
}
