package transport

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestANodeWhoseNameCannotBeResolvedIsDialedWhereItWasLast(t *testing.T) {
	there := listen(t, Options{ClusterID: cluster("c"), ServerID: "n1"})
	other := listen(t, Options{ClusterID: cluster("c"), ServerID: "n3"})
	here := listen(t, Options{ClusterID: cluster("c"), ServerID: "n2"})
	echo(t, there.RPC(), "n1")
	echo(t, other.RPC(), "n3")
	_, port, err := net.SplitHostPort(there.Addr().String())
	require.NoError(t, err)
	named := net.JoinHostPort("localhost", port)
	require.Equal(t, "n1ping", dialed(t, here, "n1", named))

	here.lookup = func(context.Context, string) ([]string, error) {
		return nil, &net.DNSError{Err: "server misbehaving", IsTemporary: true}
	}
	unknown := net.JoinHostPort("n1.invalid", port)
	require.Equal(t, "n1ping", dialed(t, here, "n1", unknown))

	// A lookup may only take longer than it is waited for, and the server have another address now.
	here.last.set("n1", "127.0.0.1:1")
	require.Equal(t, "n1ping", dialed(t, here, "n1", named))

	_, err = here.DialRPC(patient(t), "n4", unknown)
	require.ErrorContains(t, err, "n1.invalid", "nothing is known of it")
	here.last.set("n4", other.Addr().String())
	_, err = here.DialRPC(patient(t), "n4", unknown)
	require.ErrorIs(t, err, ErrOtherServer, "another server has its address now")
}

// dialed returns what the server that accepts a call says.
func dialed(t *testing.T, m *Mux, serverID, address string) string {
	c, err := m.DialRPC(patient(t), serverID, address)
	return ask(t, c, err)
}

func TestKnownAddressesAreBounded(t *testing.T) {
	var l lastAddresses
	for i := range 3 * maxKnown {
		l.set(string(rune('a'+i)), "x")
	}
	require.LessOrEqual(t, len(l.known), maxKnown)
	l.set("", "x")
	require.Empty(t, l.of(""), "that is no server")
}
