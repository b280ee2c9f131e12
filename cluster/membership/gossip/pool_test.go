package gossip

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, m Meta, change ...func(*Options)) *Pool {
	o := Options{
		Bind: "127.0.0.1:0", AdvertiseHost: "localhost", Meta: func() Meta { return m },
		Admit: func(Meta) error { return nil }, Changed: func() {}, Overruled: func() {}, Logger: slog.New(slog.DiscardHandler),
		Tune: func(c *memberlist.Config) {
			c.ProbeInterval, c.ProbeTimeout = 200*time.Millisecond, 100*time.Millisecond
			c.GossipInterval, c.SuspicionMult = 20*time.Millisecond, 3
		},
	}
	for _, f := range change {
		f(&o)
	}
	p, err := Open(context.Background(), o)
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

func named(id string, epoch uint64) Meta {
	return Meta{NodeID: id, ServerID: id + ".1", ClusterAddr: "localhost:1", Epoch: epoch}
}

func (p *Pool) addr() string {
	n := p.list.LocalNode()
	return net.JoinHostPort("localhost", strconv.Itoa(int(n.Port)))
}

func ids(p *Pool) (out []string) {
	for _, m := range p.Members() {
		out = append(out, m.ServerID)
	}
	return out
}

func eventually(t *testing.T, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, 30*time.Second, 10*time.Millisecond)
}

func TestMembersComeAndGo(t *testing.T) {
	var changes atomic.Int32
	a := open(t, named("a", 1), func(o *Options) { o.Changed = func() { changes.Add(1) } })
	b := open(t, named("b", 1))
	n, err := b.Join(context.Background(), []string{a.addr()})
	require.Positive(t, n, "%v", err) // ::1, the other address of localhost, may not answer
	eventually(t, func() bool { return len(ids(a)) == 2 })
	require.Equal(t, []string{"a.1", "b.1"}, ids(a))
	require.GreaterOrEqual(t, changes.Load(), int32(2))
	found, ok := a.Find("b.1")
	require.True(t, ok)
	require.Equal(t, b.addr(), found.GossipAddr)

	b.Crash()
	eventually(t, func() bool { return len(ids(a)) == 1 })
	require.Contains(t, a.Known(), b.addr(), "the address of a dead node is kept")
}

func TestOneServerIsListedOnceByItsLatestRun(t *testing.T) {
	a := open(t, named("a", 1))
	old, now := open(t, named("b", 1)), open(t, named("b", 2))
	for _, p := range []*Pool{old, now} {
		_, err := p.list.Join([]string{"127.0.0.1:" + portOf(a.addr())})
		require.NoError(t, err)
	}
	eventually(t, func() bool { m, ok := a.Find("b.1"); return ok && m.Epoch == 2 })
	require.Equal(t, []string{"a.1", "b.1"}, ids(a))
	old.Close()
	eventually(t, func() bool { a.mu.Lock(); defer a.mu.Unlock(); return len(a.live) == 2 })
	require.Equal(t, []string{"a.1", "b.1"}, ids(a), "the end of the old run does not end the new one")
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

func TestUpdateSpreadsAChangedRecord(t *testing.T) {
	var cluster atomic.Value
	cluster.Store("")
	a := open(t, named("a", 1))
	b := open(t, named("b", 1), func(o *Options) {
		o.Meta = func() Meta { m := named("b", 1); m.ClusterID = cluster.Load().(string); return m }
	})
	b.Join(context.Background(), []string{a.addr()})
	eventually(t, func() bool { return len(ids(a)) == 2 })
	cluster.Store("c1")
	require.NoError(t, b.Update())
	eventually(t, func() bool { m, _ := a.Find("b.1"); return m.ClusterID == "c1" })
}

func TestANodeThatIsNotAdmittedIsNeverListed(t *testing.T) {
	refuse := errors.New("of another cluster")
	var asked atomic.Int32
	a := open(t, named("a", 1), func(o *Options) {
		o.Admit = func(m Meta) error {
			if m.NodeID == "b" {
				asked.Add(1)
				return refuse
			}
			return nil
		}
	})
	b := open(t, named("b", 1))
	c := open(t, named("c", 1))
	for _, p := range []*Pool{b, c} {
		p.list.Join([]string{"127.0.0.1:" + portOf(a.addr())})
	}
	c.list.Join([]string{"127.0.0.1:" + portOf(b.addr())}) // the second hand
	eventually(t, func() bool { return asked.Load() > 0 && len(ids(c)) >= 2 && len(ids(a)) == 2 })
	require.Equal(t, []string{"a.1", "c.1"}, ids(a))
}

func TestJoinReturnsWhatFailed(t *testing.T) {
	a := open(t, named("a", 1))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := l.Addr().String()
	l.Close()
	n, err := a.Join(context.Background(), []string{"nonsense", closed})
	require.Zero(t, n)
	require.ErrorContains(t, err, `"nonsense" is not host:port`)
	require.ErrorContains(t, err, closed)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = a.Join(ctx, []string{closed})
	require.ErrorIs(t, err, context.Canceled)
}

func TestOpenRefusesBadAddresses(t *testing.T) {
	for bind, want := range map[string]string{
		"nonsense": "gossip address", "127.0.0.1:x": "the port must be a number", "127.0.0.1:70000": "the port must be a number",
	} {
		_, err := Open(context.Background(), Options{Bind: bind, AdvertiseHost: "localhost", Logger: slog.New(slog.DiscardHandler)})
		require.ErrorContains(t, err, want)
	}
}
