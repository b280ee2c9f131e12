package backupschedule

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// chain describes the files in the directory, the newest first: what each builds on.
func (n *fakeNode) chain() (all []string) {
	for _, f := range n.s.Listing().Files {
		text := fmt.Sprint(f.Index)
		if f.BaseID != "" {
			_, base, err := parseName(f.Base)
			require.NoError(n.t, err)
			text += fmt.Sprint(" on ", base)
		}
		if f.Problem != "" {
			text += ": " + f.Problem
		}
		all = append(all, text)
	}
	return all
}

// Of three backups one is whole. A kept backup keeps all on which it builds.
func TestBackupsBetweenWholeOnesAreIncremental(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNode(t, t.TempDir(), "@every 1h", 2)
		n.s.cfg.FullEvery = 3
		n.lead(true)
		n.run()
		pass(time.Minute)
		require.Equal(t, []string{"101"}, n.chain())
		for _, want := range [][]string{
			{"102 on 101", "101"},
			{"103 on 102", "102 on 101", "101"},
			{"104", "103 on 102", "102 on 101", "101"},
			{"105 on 104", "104"},
			{"106 on 105", "105 on 104", "104"},
			{"107", "106 on 105", "105 on 104", "104"},
		} {
			pass(time.Hour)
			require.Equal(t, want, n.chain())
		}
	})
}

func TestABackupIsWholeBeforeItsTurnWhereTheOneBeforeIsNoBase(t *testing.T) {
	for _, c := range []struct {
		name    string
		happens func(n *fakeNode)
		because string
		want    []string
	}{
		{"another store", func(n *fakeNode) { n.store = "store 2" }, "this node got its state anew since " + at("20000101T010000", 102),
			[]string{"103", "102 on 101", "101"}},
		{"another node", func(n *fakeNode) { n.store, n.s.cfg.NodeID = "store 2", "n2" }, "node n1 made " + at("20000101T010000", 102) + ", of files of its own",
			[]string{"103", "102 on 101", "101"}},
		{"no base", func(n *fakeNode) { n.lose(at("20000101T000000", 101)) }, "its base " + at("20000101T000000", 101) + " is missing or damaged",
			[]string{"103", "102 on 101: its base " + at("20000101T000000", 101) + " is missing or damaged"}},
		{"a cut base", func(n *fakeNode) { n.cut(at("20000101T000000", 101)) }, "its base " + at("20000101T000000", 101) + " is missing or damaged",
			[]string{"103", "102 on 101: its base " + at("20000101T000000", 101) + " is missing or damaged", "101: the backup is damaged: it does not have the end of its 7 bytes of state, as after an interrupted copy"}},
		{"an older release may lead", func(n *fakeNode) {
			asked := 0
			n.s.cfg.Incremental = func() bool { asked++; return asked > 1 }
		}, "releases that do not read incremental ones", []string{"103", "102 on 101", "101"}},
		{"a damaged base", func(n *fakeNode) { n.damage(at("20000101T010000", 102)) }, at("20000101T010000", 102) + " cannot be the base: the backup is damaged: block 1 does not match its checksum",
			[]string{"103", "102 on 101", "101"}},
		{"the newest is lost", func(n *fakeNode) { n.lose(at("20000101T010000", 102)) }, "",
			[]string{"104 on 103", "103 on 101", "101"}}, // its instant is made again
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newFakeNode(t, t.TempDir(), "@every 1h", 7)
				var log bytes.Buffer
				n.s.cfg.FullEvery, n.s.cfg.Logger = 10, slog.New(slog.NewTextHandler(&log, nil))
				n.lead(true)
				end := n.run()
				pass(90 * time.Minute)
				end()
				require.Equal(t, []string{"102 on 101", "101"}, n.chain())
				c.happens(n)
				n.run()
				pass(time.Hour)
				require.Equal(t, c.want, n.chain())
				require.Contains(t, log.String(), c.because)
				require.Equal(t, c.because != "", bytes.Contains(log.Bytes(), []byte("whole before its turn")))
				require.Empty(t, n.trouble(), "that is no failure")
				pass(time.Hour)
				require.Contains(t, n.chain()[0], " on 10", "the chain goes on")
			})
		})
	}
}

func (n *fakeNode) lose(name string) {
	require.NoError(n.t, os.Remove(filepath.Join(n.dir, name)))
}

// change writes a file anew, with another time of its last change.
func (n *fakeNode) change(name string, f func([]byte) []byte) {
	b, err := os.ReadFile(filepath.Join(n.dir, name))
	require.NoError(n.t, err)
	n.touch(name, f(b), time.Hour)
}

func (n *fakeNode) cut(name string) {
	n.change(name, func(b []byte) []byte { return b[:len(b)-1] })
}

// damage changes the last byte of the only block.
func (n *fakeNode) damage(name string) {
	n.change(name, func(b []byte) []byte { b[len(b)-50] ^= 1; return b })
}

// A file whose base is lost does not keep others, and a chain of names that lead back is no chain.
func TestWhatIsKept(t *testing.T) {
	list := []File{
		{Name: "e", ID: "5", BaseID: "4"}, {Name: "d", ID: "4", BaseID: "1"}, {Name: "c", ID: "3"}, {Name: "b", ID: "2", BaseID: "9"}, {Name: "a", ID: "1"},
	}
	require.Equal(t, map[string]bool{"e": true, "d": true, "a": true}, kept(list, 1, ""))
	require.Equal(t, map[string]bool{"e": true, "d": true, "a": true, "b": true}, kept(list, 1, "b"))
	require.Len(t, kept(list, 10, ""), 5)
	round := []File{{Name: "b", ID: "2", BaseID: "1"}, {Name: "a", ID: "1", BaseID: "2"}}
	require.Equal(t, map[string]bool{"b": true, "a": true}, kept(round, 1, ""))
	link(round)
	require.Contains(t, round[0].Problem, "missing or damaged")
}
