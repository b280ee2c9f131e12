package freeport

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTakenPortsDifferAndPortsInUseAreSkipped(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	require.False(t, portIsFree(l.Addr().(*net.TCPAddr).Port))
	a, err := Take()
	require.NoError(t, err)
	b, err := Take()
	require.NoError(t, err)
	require.NotEqual(t, a, b)
}
