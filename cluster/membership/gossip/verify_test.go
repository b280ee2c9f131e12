package gossip

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"
)

// key returns a ring of keys that are the same in each run, the first encrypts.
func keys(t *testing.T, names string) *memberlist.Keyring {
	if names == "" {
		return nil
	}
	var list [][]byte
	for _, c := range names {
		list = append(list, []byte(strings.Repeat(string(c), 32)))
	}
	ring, err := memberlist.NewKeyring(list, list[0])
	require.NoError(t, err)
	return ring
}

// secured opens a pool with keys; log may be nil.
func secured(t *testing.T, id, names string, v Verify, log *lockedLines) *Pool {
	return open(t, named(id, 1), func(o *Options) {
		o.Encryption = Encryption{Keys: keys(t, names), Verify: v}
		if log != nil {
			o.Logger = slog.New(slog.NewTextHandler(log, nil))
		}
	})
}

type lockedLines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// joins reports whether a node can exchange records with another.
func joins(p, other *Pool) bool {
	n, _ := p.Join(context.Background(), []string{"127.0.0.1:" + portOf(other.addr())})
	return n > 0
}

func TestWhoMayGossip(t *testing.T) {
	type side struct {
		keys   string
		verify Verify
	}
	plain, off, outgoing, full := side{"", VerifyFull}, side{"a", VerifyOff}, side{"a", VerifyOutgoing}, side{"a", VerifyFull}
	for _, c := range []struct {
		a, b side
		may  bool
	}{
		{plain, plain, true}, {plain, off, true}, {off, off, true}, {off, outgoing, true}, {outgoing, outgoing, true},
		{outgoing, full, true}, {full, full, true},
		{plain, full, false}, {off, full, false}, {plain, outgoing, false},
		{full, side{"b", VerifyFull}, false},
		{full, side{"b", VerifyOutgoing}, false},
		{side{"ab", VerifyFull}, side{"ba", VerifyFull}, true}, // while the primary changes
		{side{"a", VerifyFull}, side{"ba", VerifyFull}, false}, // one that was away, after a change
	} {
		t.Run(fmt.Sprint(c.a, c.b), func(t *testing.T) {
			t.Parallel()
			var log lockedLines
			a, b := secured(t, "a", c.a.keys, c.a.verify, &log), secured(t, "b", c.b.keys, c.b.verify, nil)
			require.Equal(t, c.may, joins(a, b))
			require.Equal(t, c.may, joins(b, a))
			if !c.may {
				require.False(t, joins(a, b))
				require.Equal(t, 1, strings.Count(log.String(), "because its keys differ from this node's, or only one of the two has keys"), "once for an address")
				for _, x := range []struct {
					at         *Pool
					self, sent side
				}{{a, c.a, c.b}, {b, c.b, c.a}} {
					if x.self.keys != "" && x.self.verify == VerifyFull && (x.sent.keys == "" || x.sent.verify == VerifyOff || !strings.Contains(x.self.keys, x.sent.keys[:1])) {
						require.Len(t, ids(x.at), 1, "it has taken what no key of its own has encrypted")
					}
				}
				return
			}
			// Packets get through, too: a change of b's record comes by them.
			require.NoError(t, b.Update())
			eventually(t, func() bool { return len(ids(a)) == 2 && len(ids(b)) == 2 })
		})
	}
}

// A key of full gossip is the only way in: what is not encrypted changes nothing.
func TestAStrangerWithoutAKeyChangesNothing(t *testing.T) {
	a := secured(t, "a", "a", VerifyFull, nil)
	stranger := open(t, named("x", 1))
	to := memberlist.Address{Addr: "127.0.0.1:" + portOf(a.addr()), Name: "a"}
	for range 10 {
		require.NoError(t, stranger.list.SendToAddress(to, []byte("\x04\x81"))) // packets
	}
	require.False(t, joins(stranger, a))
	b := secured(t, "b", "a", VerifyFull, nil)
	require.True(t, joins(b, a), "a node with the key still comes in")
	eventually(t, func() bool { return len(ids(a)) == 2 })
	require.Equal(t, []string{"a.1", "b.1"}, ids(a))
}

func TestTheStepsHaveNames(t *testing.T) {
	for _, v := range []Verify{VerifyFull, VerifyOutgoing, VerifyOff} {
		text, err := v.MarshalText()
		require.NoError(t, err)
		var back Verify
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, v, back)
	}
	var v Verify
	require.ErrorContains(t, v.UnmarshalText([]byte("on")), "off, outgoing or full")
}
