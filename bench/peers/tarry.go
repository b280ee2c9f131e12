package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"tarry/bench"
	"tarry/bench/localcluster"
)

// tarryTubes is the key of the nodes over the beanstalkd protocol.
const tarryTubes = "tarry-beanstalkd"

// tarrySystem is three nodes of the given binary, over one of their two protocols.
func tarrySystem(binary string, tubes bool) system {
	s := system{
		key: "tarry-http", name: "Tarry ×3, HTTP",
		durable: "fsynced on two of three nodes",
		command: []string{"tarry server --node-id n1 --data-dir … --join … --bootstrap-expect 3 (three nodes, default settings)"},
		version: func(ctx context.Context) (string, error) {
			out, err := exec.CommandContext(ctx, binary, "version").Output()
			first, _, _ := strings.Cut(string(out), "\n")
			return strings.TrimSpace(first), err
		},
		start: func(ctx context.Context, dir string, _ bool) (instance, error) {
			return startTarry(ctx, binary, dir, tubes)
		},
	}
	if tubes {
		s.key, s.name = tarryTubes, "Tarry ×3, beanstalkd protocol"
	}
	return s
}

// tarryNodes makes topics when they are used.
type tarryNodes struct {
	cluster *localcluster.Cluster
	tubes   bool
	leader  *localcluster.Node // when the nodes were ready
}

func startTarry(ctx context.Context, binary, dir string, tubes bool) (instance, error) {
	c, err := localcluster.New(localcluster.Options{Binary: binary, Dir: dir, Nodes: 3})
	if err != nil {
		return nil, err
	}
	t := &tarryNodes{cluster: c, tubes: tubes}
	if err := c.Start(); err != nil {
		return t, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := c.WaitReady(ctx, c.Nodes()...); err != nil {
		return t, err
	}
	t.leader, err = c.Leader(ctx)
	return t, err
}

func (t *tarryNodes) topic(context.Context, string) error { return nil }

// open connects to the leader over HTTP, as Tarry's clients do. Those of beanstalkd know
// no leader, so their connections are spread over the nodes.
func (t *tarryNodes) open(ctx context.Context, topic string, i int) (queue, error) {
	if !t.tubes {
		return bench.NewHTTPQueue(ctx, t.leader.HTTP, topic), nil
	}
	nodes := t.cluster.Nodes()
	return bench.NewTubeQueue(ctx, nodes[i%len(nodes)].Beanstalk, topic), nil
}

func (t *tarryNodes) pids() (pids []int) {
	for _, n := range t.cluster.Nodes() {
		pids = append(pids, n.PID())
	}
	return pids
}

func (t *tarryNodes) stop() error { return t.cluster.Stop() }

// beanstalkdSystem is one beanstalkd with its binlog synced at every write.
func beanstalkdSystem() system {
	return system{
		key: "beanstalkd", name: "beanstalkd ×1",
		durable: "fsynced on its one node",
		command: []string{"beanstalkd -l 127.0.0.1 -p … -b … -f 0"},
		version: func(ctx context.Context) (string, error) {
			out, err := exec.CommandContext(ctx, "beanstalkd", "-v").Output()
			return strings.TrimSpace(string(out)), err
		},
		start: startBeanstalkd,
	}
}

type beanstalkd struct {
	processes
	addr string
}

func startBeanstalkd(ctx context.Context, dir string, lazy bool) (instance, error) {
	b := &beanstalkd{}
	var err error
	if b.addr, err = freeAddr(); err != nil {
		return b, err
	}
	sync := "-f0"
	if lazy {
		sync = "-F"
	}
	binlog := filepath.Join(dir, "binlog")
	if err := os.MkdirAll(binlog, 0o755); err != nil {
		return b, fmt.Errorf("make a directory for the binlog: %w", err)
	}
	host, port, _ := strings.Cut(b.addr, ":")
	if err := b.launch(dir, "beanstalkd", "-l", host, "-p", port, "-b", binlog, sync); err != nil {
		return b, err
	}
	if err := answers(ctx, b.addr); err != nil {
		return b, b.explain(err)
	}
	return b, nil
}

func (b *beanstalkd) topic(context.Context, string) error { return nil }

func (b *beanstalkd) open(ctx context.Context, topic string, _ int) (queue, error) {
	return bench.NewTubeQueue(ctx, b.addr, topic), nil
}
