package ui

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/job"
)

func TestClusterPageShowsNodesAndTheirClocks(t *testing.T) {
	r := newRig(t)
	text := mainText(t, r.open(clusterPath))
	for _, part := range []string{"n1", "leader", "n3", "down", "host2:7300", "+3600000 ms", "version 2 waits for n3", "120 GiB", "900 MiB low"} {
		require.Contains(t, text, part)
	}
	require.NotContains(t, text, "Set it back", "the queue's clock is right")
}

// The page matters most when the cluster is not well.
func TestClusterPageIsThereWithoutALeader(t *testing.T) {
	r := newRig(t)
	r.operator.Err = job.NotApplied("there is no leader")
	text := mainText(t, r.open(clusterPath))
	require.Contains(t, text, "The members are not known: ")
	require.Contains(t, text, "there is no leader")
}

func TestClusterActionsAskFirst(t *testing.T) {
	for path, want := range map[string]string{"/ui/cluster/transfer": "transfer n2", "/ui/cluster/remove": "remove n2", "/ui/cluster/reset-clock": "reset clock"} {
		r := newRig(t)
		w := r.post(path, "node", "n2")
		require.Equal(t, http.StatusOK, w.Code)
		require.Empty(t, r.operator.Calls(), "%s: nothing before the answer", path)
		w = r.post(path, "node", "n2", confirmedField, "1")
		require.Equal(t, clusterPath, w.Header().Get("Location"), "%s: %s", path, w.Body)
		require.Equal(t, []string{want}, r.operator.Calls())
	}
	r := newRig(t)
	require.Contains(t, mainText(t, parsed(t, r.post("/ui/cluster/remove", "back", clusterPath))), "node is missing")
}

func TestVerifyNamesTheNodeThatDidNotAnswer(t *testing.T) {
	r := newRig(t)
	w := r.post("/ui/cluster/verify", confirmedField, "1", "back", clusterPath)
	require.Equal(t, http.StatusConflict, w.Code)
	require.Contains(t, mainText(t, parsed(t, w)), "n3: no answer in time")
}
