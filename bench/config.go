package bench

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"tarry/bench/localcluster"
)

// Scenario names what is measured.
type Scenario string

// The scenarios. Failover, Handover and Pending need a local cluster, because they
// end and restart nodes.
const (
	Add      Scenario = "add"       // one job a request
	AddBatch Scenario = "add-batch" // Batch jobs a request
	Cycle    Scenario = "cycle"     // add, reserve and finish one job, one request each
	Work     Scenario = "work"      // add a job; then finish one and reserve the next in one request
	Delayed  Scenario = "delayed"   // Rate jobs a second fall due while consumers wait
	Worker   Scenario = "worker"    // as Delayed, for one consumer that takes one job at a time
	Tenants  Scenario = "tenants"   // cycles of one tenant, alone and beside one at ten times its share
	Failover Scenario = "failover"  // kill -9 of the leader until the first acknowledged write
	Handover Scenario = "handover"  // SIGTERM of the leader: the longest stretch without an acknowledged write
	Pending  Scenario = "pending"   // memory and restart time of a node with many delayed jobs
)

// Protocol is what the load generator speaks.
type Protocol string

// The protocols. Beanstalkd has the scenarios Add, Cycle, Delayed and Worker.
const (
	HTTP       Protocol = "http"
	Beanstalkd Protocol = "beanstalkd"
)

// Server is what Local starts. A real beanstalkd beside Tarry shows both under
// the same load in the same run.
type Server string

// The servers.
const (
	Tarry           Server = "tarry"
	RealBeanstalkd  Server = "beanstalkd"       // all in memory
	FsyncBeanstalkd Server = "beanstalkd-fsync" // with a binlog that is synced at every write
)

// Target is which nodes of a local cluster the connections lead to.
type Target string

// The targets. A client that knows the leader, as the clients of Tarry do, saves the hop from
// another node to it.
const (
	Any    Target = "any" // all nodes, in turn
	Leader Target = "leader"
)

// Scenarios is all of them, in the order of the table.
var Scenarios = []Scenario{AddBatch, Add, Cycle, Work, Delayed, Worker, Tenants, Failover, Handover, Pending}

// Config is one measurement.
type Config struct {
	Scenario    Scenario
	Protocol    Protocol
	Server      Server        // what Local starts; nothing else asks for it
	Addrs       []string      // host:port of the servers' port for the protocol; workers are spread over them
	Target      Target        // where Local's connections lead; nothing else asks for it
	Secure      bool          // Local's nodes have TLS and encrypted gossip, and enforce tokens
	Connections int           // 1 to 10,000; with Tenants, those of the quiet one; with Delayed, as many consumers and as many producers; with Worker, the producers
	Batch       int           // jobs of one add-batch request or one pending request, 1 to 1000
	Pipeline    int           // Add over beanstalkd: puts that a connection sends before it reads answers, 1 to 1000
	Size        int           // bytes of a job's body, 0 to 1 MiB
	Topics      int           // topics over which jobs are spread, 1 to 1000
	IDs         bool          // jobs carry ids of their producer; without, the server names them
	Duration    time.Duration // what is measured
	Warmup      time.Duration // runs before and is not measured
	Rate        float64       // Delayed, Worker: jobs a second; Tenants: cycles of the quiet one
	Delay       time.Duration // Delayed, Worker: each job's delay; over beanstalkd in whole seconds
	Credit      int           // Worker over HTTP: the credit of a stream that the consumer takes jobs from, to 1000; 0: it reserves each
	Rounds      int           // Failover, Handover: how often the leader is ended
	Jobs        int           // Pending: how many delayed jobs

	// Cluster is set when the nodes were started for this measurement. Then
	// their CPU is measured as well.
	Cluster *localcluster.Cluster
	Logger  *slog.Logger
}

// Defaults gives a measurement its usual numbers.
func Defaults(s Scenario, p Protocol) Config {
	c := Config{
		Scenario: s, Protocol: p, Server: Tarry, Target: Any, Addrs: []string{"127.0.0.1:7300"},
		Connections: 64, Batch: 100, Pipeline: 1, Size: 200, Topics: 1,
		Duration: 20 * time.Second, Warmup: 3 * time.Second, Rate: 1000, Delay: time.Second, Rounds: 10, Jobs: 10_000_000,
	}
	switch s {
	case AddBatch, Delayed, Worker:
		c.Connections = 16
	case Tenants:
		c.Connections, c.Rate = 8, 25
	case Pending:
		c.Connections, c.Batch = 4, 1000
	}
	if p == Beanstalkd {
		c.Addrs = []string{"127.0.0.1:11300"}
		if s == Delayed {
			c.Connections = 32 // a consumer handles one job at a time
		}
	}
	return c
}

// Validate names the first field that is out of range.
func (c *Config) Validate() error {
	if !slices.Contains(Scenarios, c.Scenario) {
		return fmt.Errorf("scenario is %q; it takes one of %s", c.Scenario, scenarioNames())
	}
	for _, f := range []struct {
		name    string
		v       int
		at, max int
	}{
		{"connections", c.Connections, 1, 10_000},
		{"batch", c.Batch, 1, 1000},
		{"pipeline", c.Pipeline, 1, 1000},
		{"size", c.Size, 0, 1 << 20},
		{"credit", c.Credit, 0, 1000},
		{"topics", c.Topics, 1, 1000},
		{"rounds", c.Rounds, 1, 1000},
		{"jobs", c.Jobs, 1, 1_000_000_000},
	} {
		if f.v < f.at || f.v > f.max {
			return fmt.Errorf("%s is %d; it must be between %d and %d", f.name, f.v, f.at, f.max)
		}
	}
	switch {
	case !(c.Rate > 0 && c.Rate <= 1_000_000):
		return fmt.Errorf("rate is %v a second; it must be over 0 and at most 1000000", c.Rate)
	case c.Duration <= 0:
		return fmt.Errorf("duration is %v; it must be over 0", c.Duration)
	case c.Warmup < 0 || c.Delay < 0:
		return fmt.Errorf("warmup is %v and delay is %v; neither may be negative", c.Warmup, c.Delay)
	case len(c.Addrs) == 0:
		return fmt.Errorf("addr names no node")
	case c.Cluster == nil && !c.timed():
		return fmt.Errorf("scenario %s ends and restarts nodes, so it needs a local cluster: give --start", c.Scenario)
	case c.Logger == nil:
		return fmt.Errorf("a logger is missing")
	}
	if err := c.validateProtocol(); err != nil {
		return err
	}
	if !c.leaves() {
		return fmt.Errorf("scenario %s stops the leader, and the others must be a majority: give --start 3 or more", c.Scenario)
	}
	return nil
}

// access is what connections to the nodes need.
func (c *Config) access() localcluster.Access {
	if c.Cluster == nil {
		return localcluster.Access{}
	}
	return c.Cluster.Access()
}

// timed reports whether the scenario lasts for Duration; the others last until they
// have seen what they want, on nodes that they end.
func (c *Config) timed() bool {
	return c.Scenario != Failover && c.Scenario != Handover && c.Scenario != Pending
}

// paced reports whether jobs fall due at Rate.
func (c *Config) paced() bool { return c.Scenario == Delayed || c.Scenario == Worker }

// validateProtocol checks what one protocol has and the other lacks.
func (c *Config) validateProtocol() error {
	switch {
	case c.Target != Any && c.Target != Leader:
		return fmt.Errorf("target is %q; it takes one of %s, %s", c.Target, Any, Leader)
	case c.Target == Leader && (c.Server != Tarry || !c.timed()):
		return fmt.Errorf("target is %s; it takes server %s and a scenario that ends no node", Leader, Tarry)
	case c.Server != Tarry && c.Server != RealBeanstalkd && c.Server != FsyncBeanstalkd:
		return fmt.Errorf("server is %q; it takes one of %s, %s, %s", c.Server, Tarry, RealBeanstalkd, FsyncBeanstalkd)
	case c.Secure && c.Server != Tarry:
		return fmt.Errorf("secure: server %s has neither TLS nor tokens", c.Server)
	case c.Protocol != HTTP && c.Protocol != Beanstalkd:
		return fmt.Errorf("protocol is %q; it takes one of %s, %s", c.Protocol, HTTP, Beanstalkd)
	case c.Pipeline > 1 && (c.Protocol != Beanstalkd || c.Scenario != Add):
		return fmt.Errorf("pipeline is %d; more than 1 takes scenario %s over protocol %s", c.Pipeline, Add, Beanstalkd)
	case c.Credit > 0 && (c.Protocol != HTTP || c.Scenario != Worker):
		return fmt.Errorf("credit is %d; streams take scenario %s over protocol %s", c.Credit, Worker, HTTP)
	case c.Protocol == HTTP && c.Server != Tarry:
		return fmt.Errorf("server is %s; it takes protocol %s", c.Server, Beanstalkd)
	case c.Protocol == HTTP:
		return nil
	case !slices.Contains([]Scenario{Add, Cycle, Delayed, Worker}, c.Scenario):
		return fmt.Errorf("scenario is %s; over protocol %s it takes one of %s, %s, %s, %s", c.Scenario, Beanstalkd, Add, Cycle, Delayed, Worker)
	case c.IDs:
		return fmt.Errorf("ids: clients of protocol %s cannot choose them", Beanstalkd)
	case c.paced() && c.Delay%time.Second != 0:
		return fmt.Errorf("delay is %v; over protocol %s it takes whole seconds", c.Delay, Beanstalkd)
	case c.paced() && c.Size < dueDigits:
		return fmt.Errorf("size is %d; scenario %s over protocol %s takes at least %d", c.Size, c.Scenario, Beanstalkd, dueDigits)
	}
	return nil
}

// leaves reports whether enough nodes stay when the scenario stops the leader.
func (c *Config) leaves() bool {
	return c.Cluster == nil || c.Scenario != Failover && c.Scenario != Handover || len(c.Cluster.Nodes()) >= 3
}

func scenarioNames() string {
	names := make([]string, len(Scenarios))
	for i, s := range Scenarios {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}
