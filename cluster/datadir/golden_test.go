package datadir

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/golden"
)

func TestAnIdentityKeepsItsBytes(t *testing.T) {
	for name, id := range map[string]identity{
		"identity-2":        {Version: 2, NodeID: "n1", Incarnation: "0123456789abcdef"},
		"identity-2-left":   {Version: 2, NodeID: "n1", Incarnation: "0123456789abcdef", Left: true, LogStore: "raft-boltdb"},
		"identity-2-shards": {Version: 2, NodeID: "n1", Incarnation: "0123456789abcdef", Shards: 4},
	} {
		b, err := id.encode()
		require.NoError(t, err)
		got, err := decodeIdentity(golden.Frozen(t, name, b))
		require.NoError(t, err)
		id.Sum = got.Sum
		require.Equal(t, id, got)
	}
}
