package cluster

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAStoppedNodesLibrariesLogNothing(t *testing.T) {
	var out bytes.Buffer
	var h logCutoff
	log := h.logger(slog.New(slog.NewTextHandler(&out, nil)))
	derived := log.With("node", "n1").WithGroup("raft")
	derived.Info("before", "term", 1)
	require.Contains(t, out.String(), "node=n1 raft.term=1")
	h.end()
	said := out.String()
	log.Error("after")
	derived.Error("after")
	require.Equal(t, said, out.String())
}
