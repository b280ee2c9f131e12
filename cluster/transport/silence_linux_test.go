package transport

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"tarry/cluster/nodetls"
)

// gRPC sets this itself, but not on wrapped connections such as ours. The chaos fault
// new-addresses needs it.
func TestRPCConnectionsDoNotWaitForASilentMachine(t *testing.T) {
	m := listen(t, Options{ClusterID: cluster("c")})
	accepted := make(chan net.Conn, 1)
	go func() {
		if c, err := m.RPC().Accept(); err == nil {
			accepted <- c
		}
		close(accepted)
	}()
	dialed, err := m.DialRPC(patient(t), "n1", m.Addr().String())
	require.NoError(t, err)
	defer dialed.Close()
	there := <-accepted
	require.NotNil(t, there)
	defer there.Close()
	require.Equal(t, silence, silenceOf(t, dialed))
	require.Equal(t, silence, silenceOf(t, there))
}

// A leader that sends to a machine that is gone must not wait for Raft's deadline. But a
// follower that receives a large snapshot may be busy for a while.
func TestRaftConnectionsWaitForASilentMachineOnlyWithASnapshot(t *testing.T) {
	m := listen(t, Options{ClusterID: cluster("c")})
	layer := m.Raft(0)
	accepted := make(chan net.Conn, 1)
	go func() {
		if c, err := layer.Accept(); err == nil {
			accepted <- c
		}
		close(accepted)
	}()
	dialed, err := layer.Dial(target(m.Addr().String()), patience)
	require.NoError(t, err)
	defer dialed.Close()
	there := <-accepted
	require.NotNil(t, there)
	defer there.Close()
	require.Equal(t, raftSilence, silenceOf(t, there))
	raw := dialed.(*raftConn)
	for _, step := range []struct{ deadline, silence time.Duration }{
		{RaftTimeout, raftSilence}, {5 * RaftTimeout, snapshotSilence}, {RaftTimeout, raftSilence},
	} {
		require.NoError(t, dialed.SetDeadline(time.Now().Add(step.deadline)))
		require.Equal(t, step.silence, silenceOf(t, raw.Conn))
	}
}

func silenceOf(t *testing.T, c net.Conn) time.Duration {
	raw, err := nodetls.TCP(c.(*conn).Conn).SyscallConn()
	require.NoError(t, err)
	var millis int
	require.NoError(t, raw.Control(func(fd uintptr) {
		millis, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
	}))
	require.NoError(t, err)
	return time.Duration(millis) * time.Millisecond
}
