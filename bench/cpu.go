package bench

import (
	"fmt"
	"syscall"
	"time"

	"tarry/bench/localcluster"
)

// cpuUse is processor time in cores: 1 is one core busy all the time.
type cpuUse struct {
	self  float64
	nodes float64 // of all local nodes together; 0 when they are not local
}

// cpuMeter measures processor time between its start and its stop.
type cpuMeter struct {
	cluster *localcluster.Cluster
	begin   time.Time
	self    time.Duration
	nodes   time.Duration
	err     error
}

func startCPU(c *localcluster.Cluster) *cpuMeter {
	m := &cpuMeter{cluster: c, begin: time.Now()}
	m.self, m.nodes, m.err = readCPU(c)
	return m
}

func (m *cpuMeter) stop() (cpuUse, error) {
	if m.err != nil {
		return cpuUse{}, m.err
	}
	elapsed := time.Since(m.begin).Seconds()
	self, nodes, err := readCPU(m.cluster)
	if err != nil {
		return cpuUse{}, err
	}
	return cpuUse{(self - m.self).Seconds() / elapsed, (nodes - m.nodes).Seconds() / elapsed}, nil
}

func readCPU(c *localcluster.Cluster) (self, nodes time.Duration, err error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0, fmt.Errorf("read own CPU time: %w", err)
	}
	self = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	if c == nil {
		return self, 0, nil
	}
	for _, n := range c.Nodes() {
		used, err := n.CPU()
		if err != nil {
			return 0, 0, err
		}
		nodes += used
	}
	return self, nodes, nil
}
