package membership

import (
	"context"
	"strings"
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

	// When all disks are equally slow none is better, so it keeps leading. Evaluations
	// continue: low disks are noticed. Its own changes when it knows that the others have.
	leader := w.leader()
	before := leader.TransferAttempts()
	change := func(h diskpolicy.Health, what string, known func(reasons string) bool) {
		for _, n := range w.nodes {
			if n != leader {
				n.diskHealth.Store(&h)
			}
		}
		eventually(t, what, func() bool {
			h, err := w.leader().Health(context.Background())
			return err == nil && !h.Healthy && known(strings.Join(h.Reasons, "; "))
		})
		leader.diskHealth.Store(&h)
	}
	change(diskpolicy.Health{LogWrite: 3 * time.Second}, "two disks are slow", func(reasons string) bool {
		return strings.Count(reasons, "slow disk") >= 2
	})
	change(diskpolicy.Health{LogWrite: 3 * time.Second, Low: true}, "adds are refused", func(reasons string) bool {
		return strings.Contains(reasons, "adds are refused: ")
	})
	eventually(t, "three disks are low and three slow", func() bool {
		h, err := w.leader().Health(context.Background())
		reasons := strings.Join(h.Reasons, "; ")
		return err == nil && strings.Count(reasons, "slow disk") == 3 && strings.Count(reasons, "little free space") == 3
	})
	require.Equal(t, before, leader.TransferAttempts())
}

func TestALeaderWithALowDiskTransfersLeadershipAndAddsContinue(t *testing.T) {
	t.Parallel()
	w, _ := startTrio(t)
	low := w.leader()
	low.diskHealth.Store(&diskpolicy.Health{Low: true})
	low.Evaluate()
	eventually(t, "another node leads", func() bool { return !low.leads() && w.leader() != low })
	eventually(t, "adds go on", func() bool { return w.leader().AddsRefused() == "" })

	for _, n := range w.nodes {
		n.diskHealth.Store(&diskpolicy.Health{Low: true})
	}
	eventually(t, "adds are refused", func() bool { return w.leader().AddsRefused() != "" })
	low.diskHealth.Store(nil)
	w.leader().diskHealth.Store(nil)
	eventually(t, "adds go on", func() bool { return w.leader().AddsRefused() == "" })
}
