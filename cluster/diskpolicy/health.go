package diskpolicy

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/raftconfig"
	"tarry/cluster/report"
)

// Health is what a node reports of its own disk. The zero value is a healthy disk.
type Health struct {
	Low  bool
	Free uint64 // bytes
	// LogWrite is the mean time of the last writes to the Raft log; 0: not known.
	LogWrite time.Duration
}

// reports holds the last report of each server's disk.
type reports struct {
	mu sync.Mutex
	of map[raft.ServerID]lastReport
}

type lastReport struct {
	Health
	at time.Time
}

func (r *reports) record(id raft.ServerID, h Health, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = make(map[raft.ServerID]lastReport)
	}
	r.of[id] = lastReport{h, now}
}

// since returns the reports that are not older than oldest, and removes the others.
func (r *reports) since(oldest time.Time) map[raft.ServerID]Health {
	r.mu.Lock()
	defer r.mu.Unlock()
	fresh := make(map[raft.ServerID]Health)
	for id, rep := range r.of {
		if rep.at.Before(oldest) {
			delete(r.of, id) // the node is silent or no longer a member
			continue
		}
		fresh[id] = rep.Health
	}
	return fresh
}

// problems lists what is wrong with disks.
func problems(disks map[raft.ServerID]Health) (list []*report.Problem) {
	for id, h := range disks {
		node := raftconfig.NodeID(id)
		if h.Low {
			list = append(list, report.NewProblem(report.DiskLow, node, "%s has little free space on its disk: %d MiB", node, h.Free>>20))
		}
		if h.LogWrite >= slowWrite {
			list = append(list, report.NewProblem(report.DiskSlow, node, "%s has a slow disk: a write to its log takes %v", node, h.LogWrite.Round(time.Millisecond)))
		}
	}
	return list
}
