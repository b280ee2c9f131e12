package membership

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/cluster/diskpolicy"
)

func TestALeaderWithASlowDiskTransfersLeadershipOnlyOnce(t *testing.T) {
	t.Parallel()
	w, _ := startTrio(t)
	slow := w.leader()
	slow.diskHealth.Store(&diskpolicy.Health{LogWrite: 3 * time.Second})
	eventually(t, "another node leads", func() bool { return !slow.leads() && w.leader() != slow })
	term := w.leader().raft.CurrentTerm()

	// When all disks are equally slow none is better, so the term stays. Evaluations
	// continue: a low disk is noticed.
	for _, n := range w.nodes {
		n.diskHealth.Store(&diskpolicy.Health{LogWrite: 3 * time.Second})
	}
	leader := w.leader()
	leader.diskHealth.Store(&diskpolicy.Health{LogWrite: 3 * time.Second, Low: true})
	for _, n := range w.nodes {
		if n != leader {
			n.diskHealth.Store(&diskpolicy.Health{LogWrite: 3 * time.Second, Low: true})
		}
	}
	eventually(t, "adds are refused", func() bool { return w.leader().AddsRefused() != "" })
	require.Equal(t, term, w.leader().raft.CurrentTerm())
	h, err := w.leader().Health(context.Background())
	require.NoError(t, err)
	require.False(t, h.Healthy)
	require.Len(t, h.Reasons, 7, "three low disks, three slow ones, adds refused: %v", h.Reasons)
}

func TestALeaderWithALowDiskTransfersLeadershipAndAddsContinue(t *testing.T) {
	t.Parallel()
	w, _ := startTrio(t)
	low := w.leader()
	low.diskHealth.Store(&diskpolicy.Health{Low: true})
	low.Evaluate()
	eventually(t, "another node leads", func() bool { return !low.leads() && w.leader() != low })
	require.Empty(t, w.leader().AddsRefused())

	for _, n := range w.nodes {
		n.diskHealth.Store(&diskpolicy.Health{Low: true})
	}
	eventually(t, "adds are refused", func() bool { return w.leader().AddsRefused() != "" })
	low.diskHealth.Store(nil)
	w.leader().diskHealth.Store(nil)
	eventually(t, "adds go on", func() bool { return w.leader().AddsRefused() == "" })
}
