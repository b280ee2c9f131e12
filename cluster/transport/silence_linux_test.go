package transport

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// gRPC sets this by itself, but not on a connection that it does not recognize,
// and ours are wrapped. The chaos runs (new-addresses) show what it is for.
func TestRPCConnectionsDoNotWaitForASilentMachine(t *testing.T) {
	m := listen(t, Options{ClusterID: cluster("c")})
	accepted := make(chan net.Conn, 1)
	go func() {
		if c, err := m.RPC().Accept(); err == nil {
			accepted <- c
		}
		close(accepted)
	}()
	dialed, err := m.DialRPC(patient(t), m.Addr().String())
	require.NoError(t, err)
	defer dialed.Close()
	there := <-accepted
	require.NotNil(t, there)
	defer there.Close()
	for side, c := range map[string]net.Conn{"dialed": dialed, "accepted": there} {
		raw, err := c.(*conn).Conn.(*net.TCPConn).SyscallConn()
		require.NoError(t, err)
		var millis int
		require.NoError(t, raw.Control(func(fd uintptr) {
			millis, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		}))
		require.NoError(t, err)
		require.Equal(t, silence.Milliseconds(), int64(millis), side)
	}
}
