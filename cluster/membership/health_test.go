package membership

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Two of three nodes get empty disks, and nobody is left to take them in.
func TestHealthNamesNodesThatHaveLostTheMajoritysData(t *testing.T) {
	t.Parallel()
	w, nodes := startTrio(t)
	w.oneClusterID(nodes...)
	kept := w.leader()
	var lost []*node
	for _, n := range nodes {
		if n != kept {
			n.stop()
			n.wipe()
			lost = append(lost, n)
		}
	}
	for _, n := range lost {
		n.start()
	}
	for _, n := range lost {
		eventually(t, "the node with data names what runs without", func() bool {
			return kept.reports(n.id + " runs, but without the data of the member (server " + n.id + ".1): its directory is an empty or another one (server " + n.id + ".2)")
		})
		eventually(t, "the node without data says where to look", func() bool {
			return n.reports(n.id + " has no data, and no leader of the cluster that it finds has taken it in")
		})
	}
	require.True(t, kept.reports("of 3 voters 1 are alive, fewer than a majority"))
	require.True(t, kept.reports("A lost majority (tarry recover)"))
	for _, n := range lost {
		require.False(t, kept.reports(n.id+" is not alive"))
	}
}
