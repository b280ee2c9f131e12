package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpenFilesAreDividedWithinTheLimit(t *testing.T) {
	for _, pushes := range []bool{false, true} {
		_, err := divideOpenFiles(0, pushes)
		require.ErrorContains(t, err, "ulimit -n")
		least := 0
		for limit := range 100_000 {
			files, err := divideOpenFiles(limit, pushes)
			if err != nil {
				require.Zero(t, least, "%d is too low, %d was not", limit, least)
				require.ErrorContains(t, err, "may have")
				continue
			}
			if least == 0 {
				least = limit
			}
			require.GreaterOrEqual(t, files.clients, minClients)
			n := files.node
			require.Less(t, files.clients+n.Tables+3*n.Peers, limit)
			require.GreaterOrEqual(t, n.Tables, 74, "Pebble opens so many whatever it is told")
		}
		require.LessOrEqual(t, least, 1024, "the usual limit of old systems")
		if !pushes {
			require.LessOrEqual(t, least, 512)
		}
		_, err = divideOpenFiles(least-1, pushes)
		require.ErrorContains(t, err, fmt.Sprintf("needs %d at least", least))
	}
}
