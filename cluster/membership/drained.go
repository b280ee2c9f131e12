package membership

import (
	"sync"

	"github.com/hashicorp/raft"

	"tarry/cluster/report"
)

// memberDrains holds which servers last reported that they are drained.
type memberDrains struct {
	mu sync.Mutex
	of map[raft.ServerID]bool
}

func (d *memberDrains) record(id raft.ServerID, drained bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !drained {
		delete(d.of, id)
		return
	}
	if d.of == nil {
		d.of = make(map[raft.ServerID]bool)
	}
	d.of[id] = true
}

func (d *memberDrains) has(id raft.ServerID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.of[id]
}

// isDrained is what health says of a drained node. It is a problem although nothing is wrong,
// because a drain that nobody ended looks like nothing else.
func isDrained(node string) *report.Problem {
	return report.NewProblem(report.NodeDrained, node, `%s is drained: it does not lead, and is not ready for clients; "tarry cluster drain %s --undo" ends that`, node, node)
}
