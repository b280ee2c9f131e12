package transport

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// patience bounds what should happen at once; it is long for slow machines.
const patience = time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func listen(t *testing.T, o Options) *Mux {
	t.Helper()
	if o.Bind == "" {
		o.Bind, o.Advertise = "127.0.0.1:0", "localhost:0"
	}
	o.ServerID = cmp.Or(o.ServerID, "n1")
	m, err := Listen(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

func cluster(id string) func() string { return func() string { return id } }

// target returns a server with the default name of these tests.
func target(address string) raft.ServerAddress { return Target("n1", raft.ServerAddress(address)) }

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// echo replies to each connection of l with one line: what, and then what it read.
func echo(t *testing.T, l net.Listener, what string) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			var b [4]byte
			if _, err := io.ReadFull(c, b[:]); err == nil {
				io.WriteString(c, what+string(b[:]))
			}
			c.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-ended
	})
}

func ask(t *testing.T, c net.Conn, err error) string {
	t.Helper()
	require.NoError(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	_, err = io.WriteString(c, "ping")
	require.NoError(t, err)
	b, err := io.ReadAll(c)
	require.NoError(t, err)
	return string(b)
}

func TestRaftAndRPCShareThePort(t *testing.T) {
	a, b := listen(t, Options{}), listen(t, Options{ClusterID: cluster("one")})
	echo(t, b.RPC(), "rpc ")
	echo(t, b.Raft(0), "raft 0 ")
	echo(t, b.Raft(7), "raft 7 ")
	address := b.Addr().String()

	c, err := a.DialRPC(patient(t), "n1", address)
	require.Equal(t, "rpc ping", ask(t, c, err))
	c, err = a.Raft(0).Dial(target(address), patience)
	require.Equal(t, "raft 0 ping", ask(t, c, err))
	c, err = a.Raft(7).Dial(target(address), patience)
	require.Equal(t, "raft 7 ping", ask(t, c, err))
}

func TestAServerRefusesAConnectionForAnother(t *testing.T) {
	a, b := listen(t, Options{ServerID: "n2.old"}), listen(t, Options{ServerID: "n3.x"})
	echo(t, b.RPC(), "rpc ")
	echo(t, b.Raft(0), "raft ")
	address := b.Addr().String()
	for _, id := range []string{"", "n3.y", "n2.old"} {
		_, err := a.DialRPC(patient(t), id, address)
		require.ErrorIs(t, err, ErrOtherServer)
		_, err = a.Raft(0).Dial(Target(raft.ServerID(id), raft.ServerAddress(address)), patience)
		require.ErrorIs(t, err, ErrOtherServer)
	}
	_, err := a.Raft(0).Dial(raft.ServerAddress(address), patience)
	require.ErrorIs(t, err, ErrOtherServer, "an address names nobody")
	c, err := a.Raft(0).Dial(Target("n3.x", raft.ServerAddress(address)), patience)
	require.Equal(t, "raft ping", ask(t, c, err))
}

func TestACallersIdsAreThoseOfItsHeader(t *testing.T) {
	a, b := listen(t, Options{ServerID: "n2.a", ClusterID: cluster("one")}), listen(t, Options{})
	go func() {
		if c, err := a.DialRPC(context.Background(), "n1", b.Addr().String()); err == nil {
			c.Close()
		}
	}()
	c, err := b.RPC().Accept()
	require.NoError(t, err)
	defer c.Close()
	caller, ok := c.RemoteAddr().(*CallerAddr)
	require.True(t, ok)
	require.Equal(t, "n2.a one", caller.ServerID+" "+caller.ClusterID)
}

func TestAddressStaysAName(t *testing.T) {
	m := listen(t, Options{})
	host, port, err := net.SplitHostPort(m.Raft(0).Addr().String())
	require.NoError(t, err)
	require.Equal(t, "localhost", host)
	require.NotEqual(t, "0", port)
	require.Equal(t, m.Addr(), m.RPC().Addr())
}

func TestListenRefusesUselessAddresses(t *testing.T) {
	for _, advertise := range []string{"", "node1", ":7301", "0.0.0.0:7301", "[::]:7301"} {
		_, err := Listen(Options{Bind: "127.0.0.1:0", Advertise: advertise, ServerID: "n1"})
		require.ErrorContains(t, err, "advertised cluster address", advertise)
	}
}

func TestRefusalsHaveAReason(t *testing.T) {
	tests := map[string]struct {
		dialer, acceptor string
		dial             func(m *Mux, address string) (net.Conn, error)
		is               error
		says             string
	}{
		"other cluster": {
			dialer: "red", acceptor: "blue", is: ErrOtherCluster, says: "cluster red dialed a node of cluster blue",
			dial: func(m *Mux, a string) (net.Conn, error) { return m.DialRPC(context.Background(), "n1", a) },
		},
		"other cluster, raft": {
			dialer: "red", acceptor: "blue", is: ErrOtherCluster, says: "cluster red dialed a node of cluster blue",
			dial: func(m *Mux, a string) (net.Conn, error) { return m.Raft(0).Dial(target(a), patience) },
		},
		"unknown shard": {
			dialer: "red", acceptor: "red", is: ErrUnknownShard, says: "raft of shard 3 is not running here",
			dial: func(m *Mux, a string) (net.Conn, error) { return m.Raft(3).Dial(target(a), patience) },
		},
		"unknown kind": {
			is: ErrVersion, says: "kind 9 is not known here",
			dial: func(m *Mux, a string) (net.Conn, error) {
				return m.dial(context.Background(), a, header{kind: 9, to: "n1"})
			},
		},
		"not a node": {
			is: ErrNotTarry, says: "not the cluster port of a Tarry node",
			dial: func(m *Mux, _ string) (net.Conn, error) {
				return m.DialRPC(context.Background(), "n1", banner(t, "SSH-2.0-OpenSSH_9.6\r\n"))
			},
		},
		"closed port": {
			is: nil, says: "refused",
			dial: func(m *Mux, _ string) (net.Conn, error) { return m.DialRPC(context.Background(), "n1", "127.0.0.1:1") },
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := listen(t, Options{ClusterID: cluster(tt.dialer)}), listen(t, Options{ClusterID: cluster(tt.acceptor)})
			b.Raft(0)
			_, err := tt.dial(a, b.Addr().String())
			require.ErrorContains(t, err, tt.says)
			if tt.is != nil {
				require.ErrorIs(t, err, tt.is)
			}
		})
	}
}

// banner is a server that sends text on each connection.
func banner(t *testing.T, text string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if c, err := l.Accept(); err == nil {
			io.WriteString(c, text)
			io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	return l.Addr().String()
}

func TestNodesWithoutAClusterAreAccepted(t *testing.T) {
	for name, ids := range map[string][2]string{"joiner dials": {"", "one"}, "joiner is dialed": {"one", ""}, "same cluster": {"one", "one"}} {
		t.Run(name, func(t *testing.T) {
			a, b := listen(t, Options{ClusterID: cluster(ids[0])}), listen(t, Options{ClusterID: cluster(ids[1])})
			echo(t, b.RPC(), "rpc ")
			c, err := a.DialRPC(patient(t), "n1", b.Addr().String())
			require.Equal(t, "rpc ping", ask(t, c, err))
		})
	}
}

func raw(t *testing.T, m *Mux, say string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", m.listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(c, say)
	require.NoError(t, err)
	return c
}

func TestNewerVersionGetsAReason(t *testing.T) {
	m := listen(t, Options{ClusterID: cluster("one")})
	c := raw(t, m, magic+"\x06whatever a newer release says here")
	a, err := readAnswer(c)
	require.NoError(t, err)
	require.Equal(t, answer{status: statusVersion, clusterID: "one", reason: "wire version 6 is not known here, only 5: upgrade the older node"}, a)
}

func TestConnectionsWithoutAHeaderAreClosed(t *testing.T) {
	m := listen(t, Options{})
	c := raw(t, m, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	b, err := io.ReadAll(c)
	require.Empty(t, b)
	var late net.Error // a reset is fine: it was closed with unread bytes
	require.False(t, errors.As(err, &late) && late.Timeout(), "still open")
}

func TestSlowHandshakesAndFullQueuesDoNotBlockOthers(t *testing.T) {
	a, b := listen(t, Options{}), listen(t, Options{})
	for range 20 {
		raw(t, b, "TAR") // and sends nothing more
	}
	// Accept is not called for RPC: its queue fills and overflows.
	address := b.Addr().String()
	for range acceptQueue + 4 {
		c, err := a.DialRPC(patient(t), "n1", address)
		require.NoError(t, err)
		defer c.Close()
	}
	echo(t, b.Raft(0), "raft ")
	c, err := a.Raft(0).Dial(target(address), patience)
	require.Equal(t, "raft ping", ask(t, c, err))
}

func TestConnectionsOfEachKindAreBounded(t *testing.T) {
	a, b := listen(t, Options{}), listen(t, Options{Bind: "127.0.0.1:0", Advertise: "localhost:0", MaxConns: 4})
	b.Raft(0)
	address := b.Addr().String()
	var open []net.Conn
	for range 2 {
		_, err := a.DialRPC(patient(t), "n1", address)
		require.NoError(t, err)
		c, err := b.RPC().Accept()
		require.NoError(t, err)
		open = append(open, c)
	}
	greeted := func() { // those that are being refused count too, and a dialer may know before
		require.Eventually(t, func() bool { return b.greeting.Held() == 0 }, patience, time.Millisecond)
	}
	greeted()
	_, err := a.DialRPC(patient(t), "n1", address)
	require.ErrorIs(t, err, ErrBusy)
	greeted()
	c, err := a.Raft(0).Dial(target(address), patience)
	require.NoError(t, err, "raft has a limit of its own")
	defer c.Close()

	require.NoError(t, open[0].Close())
	require.NoError(t, open[0].Close(), "counted once")
	_, err = a.DialRPC(patient(t), "n1", address)
	require.NoError(t, err)
	greeted()
	_, err = a.DialRPC(patient(t), "n1", address)
	require.ErrorIs(t, err, ErrBusy)
}

func TestDialHonoursItsContext(t *testing.T) {
	m := listen(t, Options{})
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel connects, but there is no reply
	require.NoError(t, err)
	defer silent.Close()
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	go func() {
		_, err := m.DialRPC(ctx, "n1", silent.Addr().String())
		failed <- err
	}()
	c, err := silent.Accept()
	require.NoError(t, err)
	defer c.Close()
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
}

func TestCloseEndsEverything(t *testing.T) {
	a, b := listen(t, Options{}), listen(t, Options{})
	layer := b.Raft(0)
	accepted := make(chan error, 1)
	go func() {
		_, err := b.RPC().Accept()
		accepted <- err
	}()
	out, err := a.Raft(0).Dial(target(b.Addr().String()), patience)
	require.NoError(t, err)
	in, err := layer.Accept()
	require.NoError(t, err)
	raw(t, b, "T")

	require.NoError(t, b.Close())
	require.ErrorIs(t, <-accepted, net.ErrClosed)
	_, err = layer.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = in.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = b.DialRPC(patient(t), "n1", a.Addr().String())
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = b.Raft(1).Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	require.NoError(t, out.SetDeadline(time.Now().Add(patience)))
	_, err = out.Read(make([]byte, 1))
	require.Error(t, err)
	require.NoError(t, a.Close())
	_, err = out.Write([]byte("x"))
	require.ErrorIs(t, err, net.ErrClosed, "dialed connections are closed too")
}

func TestAClosedLayerCanBeReopened(t *testing.T) {
	a, b := listen(t, Options{}), listen(t, Options{})
	require.NoError(t, b.Raft(0).Close())
	_, err := a.Raft(0).Dial(target(b.Addr().String()), patience)
	require.ErrorIs(t, err, ErrUnknownShard)
	echo(t, b.Raft(0), "raft ")
	c, err := a.Raft(0).Dial(target(b.Addr().String()), patience)
	require.Equal(t, "raft ping", ask(t, c, err))
}

// If one address opens as many connections as possible and sends only the beginning of a
// header on each, other nodes can still connect.
func TestSilentConnectionsOfOneAddressDoNotBlockNodes(t *testing.T) {
	a, b := listen(t, Options{}), listen(t, Options{Bind: "127.0.0.1:0", Advertise: "localhost:0"})
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}
	for range maxHandshakes { // the last ones were handled when the dialed node replies
		c, err := from.Dial("tcp4", b.listener.Addr().String())
		if err != nil {
			t.Skipf("no second address on this machine: %v", err)
		}
		defer c.Close()
	}
	c, err := a.DialRPC(patient(t), "n1", b.Addr().String())
	require.NoError(t, err)
	c.Close()
}
