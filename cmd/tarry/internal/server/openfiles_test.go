package server

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpenFilesAreDividedWithinTheLimit(t *testing.T) {
	for _, pushes := range []bool{false, true} {
		_, err := DivideOpenFiles(0, pushes)
		require.ErrorContains(t, err, "ulimit -n")
		least := 0
		for limit := range 100_000 {
			files, err := DivideOpenFiles(limit, pushes)
			if err != nil {
				require.Zero(t, least, "%d is too low, %d was not", limit, least)
				require.ErrorContains(t, err, "may have")
				continue
			}
			if least == 0 {
				least = limit
			}
			require.GreaterOrEqual(t, files.Clients, minClients)
			n := files.node
			require.Less(t, files.Clients+n.Tables+3*n.Peers, limit)
			require.GreaterOrEqual(t, n.Tables, 74, "Pebble opens so many whatever it is told")
		}
		require.LessOrEqual(t, least, 1024, "the usual limit of old systems")
		if !pushes {
			require.LessOrEqual(t, least, 512)
		}
		_, err = DivideOpenFiles(least-1, pushes)
		require.ErrorContains(t, err, fmt.Sprintf("needs %d at least", least))
	}
}
