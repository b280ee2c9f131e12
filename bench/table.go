package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"tarry/bench/localcluster"
)

// Row is one line of the table in docs/benchmarks.md.
type Row struct {
	What   string
	Nodes  int // of the cluster that is started for it
	Config Config
}

// Rows is the table: what a user of a delay queue wants to know first.
func Rows() []Row {
	row := func(what string, nodes int, s Scenario) Row { return Row{what, nodes, Defaults(s, HTTP)} }
	return []Row{
		row("add in batches of 100, 16 connections", 3, AddBatch),
		row("add one a request, 64 connections", 3, Add),
		row("add, reserve, finish one by one, 64 connections", 3, Cycle),
		row("add, then finish and take the next in one call, 64 connections", 3, Work),
		row("lateness at 1,000 due/s with waiting consumers", 3, Delayed),
		row("lateness at 1,000 due/s, one consumer that takes one job at a time", 3, Worker),
		row("cycles of one tenant beside one at ten times its share", 3, Tenants),
		row("leader kill -9 to first acknowledged write", 3, Failover),
		row("leader SIGTERM: longest time without an acknowledged write", 3, Handover),
		row("10 million delayed jobs on one node", 1, Pending),
	}
}

// BeanstalkdRows is the table of the beanstalkd protocol: three nodes of Tarry,
// and a real beanstalkd with and without a synced binlog when withReal says so.
func BeanstalkdRows(withReal bool) []Row {
	servers := []struct {
		name   string
		nodes  int
		server Server
	}{
		{"Tarry, three nodes", 3, Tarry},
		{"beanstalkd, binlog synced at every write", 1, FsyncBeanstalkd},
		{"beanstalkd, in memory", 1, RealBeanstalkd},
	}
	if !withReal {
		servers = servers[:1]
	}
	var rows []Row
	for _, m := range []struct {
		what     string
		scenario Scenario
		pipeline int
	}{
		{"put, one by one", Add, 1},
		{"put, 32 in a pipeline", Add, 32},
		{"put, reserve, delete", Cycle, 1},
		{"lateness at 1,000 due/s with waiting consumers", Delayed, 1},
		{"lateness at 1,000 due/s, one consumer", Worker, 1},
	} {
		for _, s := range servers {
			c := Defaults(m.scenario, Beanstalkd)
			c.Pipeline, c.Server = m.pipeline, s.server
			rows = append(rows, Row{m.what + ": " + s.name, s.nodes, c})
		}
	}
	return rows
}

// HaveBeanstalkd reports whether a real beanstalkd is installed.
func HaveBeanstalkd() bool {
	_, err := exec.LookPath(beanstalkdBinary)
	return err == nil
}

const beanstalkdBinary = "beanstalkd"

// Command is the command line that repeats a measurement on a local cluster.
func (c *Config) Command(nodes int) string {
	d := Defaults(c.Scenario, c.Protocol)
	var b strings.Builder
	fmt.Fprintf(&b, "tarry bench --start %d --scenario %s", nodes, c.Scenario)
	add := func(flag string, v, standard any, shown bool) {
		if shown || v != standard {
			fmt.Fprintf(&b, " --%s %v", flag, v)
		}
	}
	add("protocol", c.Protocol, HTTP, false)
	add("server", c.Server, Tarry, false)
	add("target", c.Target, Any, false)
	add("secure", c.Secure, false, false)
	add("connections", c.Connections, d.Connections, c.timed())
	add("batch", c.Batch, d.Batch, c.Scenario == AddBatch)
	add("pipeline", c.Pipeline, d.Pipeline, false)
	add("credit", c.Credit, d.Credit, false)
	add("size", c.Size, d.Size, false)
	add("topics", c.Topics, d.Topics, false)
	add("ids", c.IDs, d.IDs, false)
	add("rate", c.Rate, d.Rate, c.paced() || c.Scenario == Tenants)
	add("delay", c.Delay, d.Delay, false)
	add("duration", c.Duration, d.Duration, false)
	add("warmup", c.Warmup, d.Warmup, false)
	add("rounds", c.Rounds, d.Rounds, c.Scenario == Failover || c.Scenario == Handover)
	add("jobs", c.Jobs, d.Jobs, c.Scenario == Pending)
	return strings.NewReplacer("--ids true", "--ids", "--secure true", "--secure").Replace(b.String())
}

// Local starts a cluster of new nodes of the given binary, or a real beanstalkd
// when c.Server asks for one, makes one measurement against it, and removes it
// with its data. dir is where the data goes; "" is
// the system's directory for temporary files, which should not be in memory.
func Local(ctx context.Context, c Config, nodes int, binary, dir string, log *slog.Logger) (res *Result, err error) {
	if c.Server != Tarry && nodes != 1 {
		return nil, fmt.Errorf("start is %d; server %s takes 1", nodes, c.Server)
	}
	dir, err = os.MkdirTemp(dir, "tarry-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the nodes: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cluster, err := c.place(nodes, binary, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	c.Logger = log
	c.Load(cluster)
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := cluster.Start(); err != nil {
		return nil, err
	}
	ready, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	wait := cluster.WaitReady
	if c.Server != Tarry {
		wait = cluster.WaitListening
	}
	if err := wait(ready, cluster.Nodes()...); err != nil {
		return nil, withLogs(err, cluster)
	}
	if c.Secure {
		if err := cluster.Enforce(ready); err != nil {
			return nil, withLogs(err, cluster)
		}
	}
	if c.Target == Leader {
		leader, err := cluster.Leader(ready)
		if err != nil {
			return nil, withLogs(err, cluster)
		}
		c.Addrs = c.addrs(leader)
	}
	if res, err = Run(ctx, c); err != nil {
		return nil, withLogs(err, cluster)
	}
	res.Command = c.Command(nodes)
	return res, nil
}

// Load makes all nodes of a cluster those that are loaded.
func (c *Config) Load(cluster *localcluster.Cluster) {
	c.Cluster, c.Addrs = cluster, c.addrs(cluster.Nodes()...)
}

// addrs lists where nodes serve the protocol.
func (c *Config) addrs(nodes ...*localcluster.Node) []string {
	var list []string
	for _, n := range nodes {
		if c.Protocol == Beanstalkd {
			list = append(list, n.Beanstalk)
		} else {
			list = append(list, n.HTTP)
		}
	}
	return list
}

// place makes what c.Server asks for, without starting it.
func (c *Config) place(nodes int, binary, dir string) (*localcluster.Cluster, error) {
	if c.Server == Tarry {
		return localcluster.New(localcluster.Options{Binary: binary, Dir: dir, Nodes: nodes, SecureNodes: c.Secure, SecureClients: c.Secure})
	}
	binary, err := exec.LookPath(beanstalkdBinary)
	if err != nil {
		return nil, fmt.Errorf("find a real beanstalkd: %w", err)
	}
	return localcluster.NewBeanstalkd(binary, dir, c.Server == FsyncBeanstalkd)
}

// withLogs adds the end of each node's log to an error, because the logs are
// removed with the cluster.
func withLogs(err error, c *localcluster.Cluster) error {
	const tail = 1000
	for _, n := range c.Nodes() {
		if data, readErr := os.ReadFile(n.LogPath()); readErr == nil {
			err = fmt.Errorf("%w\nend of the log of %s:\n%s", err, n.ID, data[max(0, len(data)-tail):])
		}
	}
	return err
}
