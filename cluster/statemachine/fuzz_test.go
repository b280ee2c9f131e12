package statemachine

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"tarry/fsm"
)

// A configuration from the store or from an archive is understood or refused.
func FuzzConfiguration(f *testing.F) {
	good := raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "n1.ab", Address: "n1:7301"}, {ID: "n2.cd", Address: "n2:7301", Suffrage: raft.Nonvoter}}})
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff}) // a list of 4 billion
	f.Fuzz(func(t *testing.T, data []byte) {
		meta, err := metaOf(fsm.Applied{Index: 7, Term: 2, Configuration: data})
		if err != nil {
			return
		}
		again, err := decodeConfiguration(raft.EncodeConfiguration(meta.Configuration))
		require.NoError(t, err)
		require.Equal(t, len(meta.Configuration.Servers), len(again.Servers))
	})
}
