package transport

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/cluster/nodetls"
	"tarry/internal/certs/certstest"
)

// secured are the options of a node that has a certificate.
func secured(t testing.TB, a *certstest.Authority, mode nodetls.Mode, nodeID, serverID string) Options {
	id, err := nodetls.Open(a.Node(nodeID), nodeID)
	require.NoError(t, err)
	return Options{ServerID: serverID, TLS: nodetls.Config{Mode: mode, Identity: id}}
}

// Nodes whose modes are one step apart talk to each other, and by TLS whenever one of
// them dials it.
func TestEachStepOfTheMoveToTLS(t *testing.T) {
	a := certstest.New(t, "orders")
	for _, c := range []struct {
		dialer, acceptor nodetls.Mode
		works, secure    bool
	}{
		{nodetls.Off, nodetls.Off, true, false},
		{nodetls.Off, nodetls.Accept, true, false},
		{nodetls.Off, nodetls.Prefer, true, false},
		{nodetls.Off, nodetls.Require, false, false},
		{nodetls.Accept, nodetls.Off, true, false},
		{nodetls.Accept, nodetls.Accept, true, false},
		{nodetls.Accept, nodetls.Prefer, true, false},
		{nodetls.Accept, nodetls.Require, false, false},
		{nodetls.Prefer, nodetls.Off, true, false},
		{nodetls.Prefer, nodetls.Accept, true, true},
		{nodetls.Prefer, nodetls.Prefer, true, true},
		{nodetls.Prefer, nodetls.Require, true, true},
		{nodetls.Require, nodetls.Off, false, false},
		{nodetls.Require, nodetls.Accept, true, true},
		{nodetls.Require, nodetls.Prefer, true, true},
		{nodetls.Require, nodetls.Require, true, true},
	} {
		t.Run(c.dialer.String()+" dials "+c.acceptor.String(), func(t *testing.T) {
			from, to := listen(t, secured(t, a, c.dialer, "n2", "n2.a")), listen(t, secured(t, a, c.acceptor, "n1", "n1.a"))
			layer := to.Raft(0)
			conn, err := from.Raft(0).Dial(Target("n1.a", raft.ServerAddress(to.Addr().String())), patience)
			if !c.works {
				require.Error(t, err)
				if c.acceptor == nodetls.Require {
					require.ErrorIs(t, err, ErrIdentity)
					require.ErrorContains(t, err, "--cluster-tls-mode=require")
				}
				return
			}
			require.NoError(t, err)
			defer conn.Close()
			there, err := layer.Accept()
			require.NoError(t, err)
			defer there.Close()
			caller := there.RemoteAddr().(*CallerAddr)
			require.Equal(t, "n2.a", caller.ServerID)
			require.Equal(t, c.secure, caller.Proved)
			for _, pair := range [][2]net.Conn{{conn, there}, {there, conn}} {
				go pair[0].Write([]byte("ping"))
				got := make([]byte, 4)
				_, err := io.ReadFull(pair[1], got)
				require.NoError(t, err)
				require.Equal(t, "ping", string(got))
			}
		})
	}
}

func TestACertificateIsBoundToTheServerID(t *testing.T) {
	a := certstest.New(t, "orders")
	to := listen(t, secured(t, a, nodetls.Require, "n1", "n1.a"))
	to.Raft(0)
	// The certificate is n2's and the header says n3.
	liar := listen(t, secured(t, a, nodetls.Require, "n2", "n3.a"))
	_, err := liar.DialRPC(patient(t), "n1.a", to.Addr().String())
	require.ErrorIs(t, err, ErrIdentity)
	require.ErrorContains(t, err, `it is node "n3", and its certificate is that of node "n2"`)
	// The dialer means n4 and reaches n1, which pretends.
	honest := listen(t, secured(t, a, nodetls.Require, "n2", "n2.a"))
	impostor := listen(t, secured(t, a, nodetls.Require, "n1", "n4.a"))
	_, err = honest.DialRPC(patient(t), "n4.a", impostor.Addr().String())
	require.ErrorIs(t, err, nodetls.ErrRefused)
	_, err = honest.DialRPC(patient(t), "", to.Addr().String())
	require.ErrorContains(t, err, "no node is named")
}

// syncBuffer is a log that several goroutines write.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestAnotherAuthorityIsRefusedWithALineInTheLog(t *testing.T) {
	a, twin := certstest.New(t, "orders"), certstest.New(t, "orders")
	var log syncBuffer
	o := secured(t, a, nodetls.Require, "n1", "n1.a")
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	to, stranger := listen(t, o), listen(t, secured(t, twin, nodetls.Require, "n2", "n2.a"))
	_, err := stranger.DialRPC(patient(t), "n1.a", to.Addr().String())
	require.ErrorIs(t, err, nodetls.ErrRefused, "the dialer looks first")
	require.Eventually(t, func() bool { return bytes.Contains([]byte(log.String()), []byte("bad certificate")) }, patience, time.Millisecond)
}

// boundSilence sets options of the socket, which lies below TLS.
func TestConnectionsOverTLSDoNotWaitForASilentMachine(t *testing.T) {
	a := certstest.New(t, "orders")
	from, to := listen(t, secured(t, a, nodetls.Require, "n2", "n2.a")), listen(t, secured(t, a, nodetls.Require, "n1", "n1.a"))
	layer := to.Raft(0)
	dialed, err := from.Raft(0).Dial(Target("n1.a", raft.ServerAddress(to.Addr().String())), patience)
	require.NoError(t, err)
	defer dialed.Close()
	there, err := layer.Accept()
	require.NoError(t, err)
	defer there.Close()
	require.Equal(t, raftSilence, silenceOf(t, there))
	require.Equal(t, raftSilence, silenceOf(t, dialed.(*raftConn).Conn))
	require.NoError(t, dialed.SetDeadline(time.Now().Add(5*RaftTimeout)))
	require.Equal(t, snapshotSilence, silenceOf(t, dialed.(*raftConn).Conn))
}

// Whatever a stranger sends first, the node closes the connection and lives.
func FuzzFirstBytes(f *testing.F) {
	for _, seed := range []string{"", "T", "TARRY\x04\x01", "\x16", "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", "\x16\x03\x01\xff\xff", "GET / HTTP/1.1\r\n\r\n", "\x15\x03\x03\x00\x02\x02\x28"} {
		f.Add([]byte(seed))
	}
	a := certstest.New(f, "orders")
	o := secured(f, a, nodetls.Prefer, "n1", "n1.a")
	o.Bind, o.Advertise = "127.0.0.1:0", "localhost:0"
	m, err := Listen(o)
	require.NoError(f, err)
	f.Cleanup(func() { m.Close() })
	f.Fuzz(func(t *testing.T, first []byte) {
		c, err := net.Dial("tcp", m.listener.Addr().String())
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		if _, err := c.Write(first); err == nil {
			c.(*net.TCPConn).CloseWrite()
		}
		_, err = io.Copy(io.Discard, c)
		if late, ok := err.(net.Error); ok && late.Timeout() {
			t.Fatal("still open")
		}
	})
}
