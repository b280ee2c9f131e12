package gossip

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/golden"
)

func TestANodesRecordKeepsItsBytes(t *testing.T) {
	m := Meta{NodeID: "n1", ServerID: "n1.0123456789abcdef", ClusterAddr: "10.0.0.1:7301", HTTPAddr: "10.0.0.1:7300",
		ClusterID: "c1", Version: "1.2.3", Expect: 3, Protocol: 1, Epoch: 1_700_000_000_000, Fresh: true, NonVoter: true}
	b, err := m.Encode()
	require.NoError(t, err)
	got, err := DecodeMeta(golden.Frozen(t, "meta-1", b))
	require.NoError(t, err)
	require.Equal(t, m, got)
}
