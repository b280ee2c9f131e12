package lending

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var findMutants = flag.Bool("lending.mutants", false, "check that the search finds each wrong variant; needs the go command")

// mutant is a wrong variant: old becomes new, in the protocol or in what it may rely on.
type mutant struct {
	name, config string
	edits        [][3]string // file, old, new
}

func one(file, old, new string) [][3]string { return [][3]string{{file, old, new}} }

var mutants = []mutant{
	// Messages and jobs of a stream that broke.
	{"old messages arrive on the new stream", "one", one("events_test.go", "x.up, x.down, x.homeStale, x.suppStale = nil, nil, true, true", "x.homeStale, x.suppStale = true, true")},
	{"a Reserve of the old stream is answered on the new one", "one", one("world_test.go", "r.mark(i, true, func(x *reserve) { x.abandoned, x.left = true, gone })", "")},
	{"a home remembers its interest after a loss", "one", [][3]string{
		{"receive.go", "l.suppliers = with(l.suppliers, &supplier", "if named(l.suppliers, name) != nil {\n\t\treturn\n\t}\n\tl.suppliers = with(l.suppliers, &supplier"},
		{"receive.go", "	l.suppliers = without(l.suppliers, name)\n", ""},
	}},
	{"a supplier remembers its want after a loss", "one", [][3]string{
		{"receive.go", "l.homes = with(l.homes, &home", "if h := named(l.homes, name); h != nil {\n\t\th.interest = map[string]bool{}\n\t\treturn\n\t}\n\tl.homes = with(l.homes, &home"},
		{"receive.go", "	l.homes = without(l.homes, name)\n", "	h.guests = map[uint64]bool{}\n"},
	}},
	// What one node knows of another.
	{"a home that was short thinks its interest is known", "onehome", one("receive.go", "		s.hint[t] = n\n		delete(s.told, t)\n", "		s.hint[t] = n\n")},
	{"a want that was filled ends the interest", "onehome", one("receive.go", "if m.Short {", "{")},
	{"Done does not close the want", "one", one("receive.go", "		delete(h.asked, m.Topic)\n", "")},
	{"a hint stays", "one", [][3]string{
		{"lender.go", "			lower(s.hint, t, n)\n", "			_ = n\n"},
		{"receive.go", "		for _, t := range topics {\n			delete(s.hint, t)\n		}\n", "		_ = topics\n"},
	}},
	{"a home reports interest in the first topic of a waiter only", "topics", one("lender.go", "	if _, ok := l.room.First(t); !ok {\n		return\n	}\n	for _, s := range l.suppliers {\n		if !s.told[t] {", "	w, ok := l.room.First(t)\n	if !ok {\n		return\n	}\n	if of, _ := l.room.Reserve(w); of[0] != t {\n		return\n	}\n	for _, s := range l.suppliers {\n		if !s.told[t] {")},
	{"a topic is forgotten that has waiters", "forget", one("receive.go", "	if _, ok := l.room.First(t); ok {\n		return\n	}\n", "")},
	// Events that are recorded, and nothing follows from them.
	{"interest comes silently", "one", one("receive.go", "		h.interest[m.Topic] = true\n		l.Settle(m.Topic)\n", "		h.interest[m.Topic] = true\n")},
	{"Done comes silently", "onehome", one("receive.go", "			delete(h.interest, m.Topic)\n		}\n		l.Settle(m.Topic)\n", "			delete(h.interest, m.Topic)\n		}\n")},
	{"a waiter comes back silently", "one", one("receive.go", "	l.room.Requeue(w)\n	l.Settle(topics...)\n", "	l.room.Requeue(w)\n	_ = topics\n")},
	{"a guest idles", "one", one("lender.go", "	if l.hasJobs(t) {\n		return\n	}\n	for g", "	if true {\n		return\n	}\n	for g")},
	{"a group begins silently", "one", one("events_test.go", "w.leads[n][g] = true; w.settleAll(n)", "w.leads[n][g] = true")},
	{"a group ends silently", "one", one("events_test.go", "		w.result(r, 0)\n	}\n	w.settleAll(n)\n", "		w.result(r, 0)\n	}\n")},
	{"the other topics of a lent waiter are not settled", "soon-topics", [][3]string{
		{"lender.go", "append(lent, topics...)", "topics"},
		{"receive.go", "	l.Settle(lent...)\n", ""},
	}},
	// Guests.
	{"a guest for a soon-due job is returned", "soon-still", one("lender.go", "return l.room.Free(t) > 0 || l.room.Soon(t) > 0", "return l.room.Free(t) > 0")},
	{"a guest stays busy when the group ends", "one", one("events_test.go", "	for _, r := range mine {\n", "	for _, r := range mine {\n		if r.guest {\n			continue\n		}\n")},
	{"claims of a deposed leader count for the next", "two", one("world_test.go", "int(r.group) == g && int(r.node) == n {\n			free", "int(r.group) == g {\n			free")},
	{"a busy guest is answered before its Reserve ends", "one", one("world_test.go", "	if r.guests[r.n][i] == guestWaits {\n", "	if r.guests[r.n][i] != noGuest {\n")},
	{"a cancel is answered twice", "one", one("receive.go", "		if h.guests[m.Waiter] {\n", "		if !h.guests[m.Waiter] {\n			l.room.Send(h.name, Message{Kind: Returned, Waiter: m.Waiter})\n		} else {\n")},
	{"a cancelled guest leaves silently", "soon", one("receive.go", "l.Settle(l.returnGuest(Guest{h.name, m.Waiter}, m.Keep)...)", "l.returnGuest(Guest{h.name, m.Waiter}, m.Keep)")},
	{"a poll stays for a soon-due job", "poll-soon", one("receive.go", "	if poll {\n", "	if false {\n")},
	// Ends of lends.
	{"jobs for a consumer that hung up are forgotten", "one", one("receive.go", "			l.room.Release(m.Jobs)\n		}\n		if p", "		}\n		if p")},
	{"a consumer that hung up gets jobs", "one", one("receive.go", "			if p.leaving == gone {\n", "			if false {\n")},
	{"a waiter whose time is over waits again", "one", one("receive.go", "	if p.leaving != stays {\n		l.room.End(w)\n		return\n	}\n", "")},
	{"a lost stream keeps its waiters", "one", one("receive.go", "		if p.to == s {\n", "		if false {\n")},
	{"a poll asks a supplier whose stream broke", "poll", one("receive.go", "return x == s })", "return false })")},
}

// source returns the files of this package that a mutant changes.
func (m mutant) source(t *testing.T) map[string]string {
	changed := map[string]string{}
	for _, e := range m.edits {
		text, ok := changed[e[0]]
		if !ok {
			b, err := os.ReadFile(e[0])
			require.NoError(t, err)
			text = string(b)
		}
		require.Equal(t, 1, strings.Count(text, e[1]), "%s: %q must be in %s once", m.name, e[1], e[0])
		changed[e[0]] = strings.Replace(text, e[1], e[2], 1)
	}
	return changed
}

func TestTheSearchFindsWrongVariants(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			changed := m.source(t)
			if !*findMutants {
				return
			}
			dir := t.TempDir()
			replace := map[string]string{}
			for file, text := range changed {
				path, err := filepath.Abs(file)
				require.NoError(t, err)
				replace[path] = filepath.Join(dir, file)
				require.NoError(t, os.WriteFile(replace[path], []byte(text), 0o600))
			}
			overlay, err := json.Marshal(map[string]any{"Replace": replace})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
			out, err := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"),
				"-run", "^TestLendingHoldsInAllOrdersOfEvents$", ".", "-lending.config", m.config, "-lending.states", "200000").CombinedOutput()
			require.Error(t, err, "not found")
			require.Contains(t, string(out), "--- FAIL: TestLendingHoldsInAllOrdersOfEvents/", "%s", out)
			require.NotContains(t, string(out), "more than 200000 states", "not found")
			t.Logf("%s", out)
		})
	}
}
