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

func TestNoOtherProcessGetsTheBlock(t *testing.T) {
	port, err := Take()
	require.NoError(t, err)
	first := port - (port-firstPort)%blockSize
	require.False(t, portIsFree(first), "the block's owner listens on its first port")
	seen := map[int]bool{}
	for range 2 * blockSize {
		p, err := Take()
		require.NoError(t, err)
		require.False(t, seen[p])
		require.NotZero(t, (p-firstPort)%blockSize)
		seen[p] = true
	}
}
