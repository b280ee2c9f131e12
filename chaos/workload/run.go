package workload

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"tarry/chaos/history"
	"tarry/internal/sleep"
)

// Node has the addresses of a node for clients, host:port. Beanstalk may be empty.
type Node struct{ HTTP, Beanstalk string }

// Config has the amount of each kind of load. The zero value of a number means none.
type Config struct {
	// Nodes returns the nodes to use, some of which may be down. It is called before each
	// request, so the list may change. It is never empty.
	Nodes    func() []Node
	Recorder *history.Recorder
	Topics   []string // of HTTP clients
	// Tubes are the topics of beanstalkd clients. They are not in Topics, because their
	// consumers do not get a generation and so must not share jobs with those that do.
	Tubes []string
	// Edited are the topics of editors, whose jobs change while they wait. HTTP consumers
	// also reserve from them.
	Edited []string
	// Limited are topics with limits, which Prepare sets. HTTP consumers also reserve from
	// them.
	Limited map[string]history.Limits
	// Tenants are namespaces with quotas, by the prefix of their topics. Prepare creates them. HTTP
	// consumers also reserve from them.
	Tenants map[string]history.Limits
	// Scheduled is the topic of the jobs of schedules, which Prepare creates and Drain
	// ends. HTTP consumers also reserve from it. Empty: there are no schedules.
	Scheduled string
	// Awaited is a topic of few jobs that only patient consumers reserve from, so that always
	// some wait. Empty: there is none.
	Awaited string
	// Pushed are topics whose jobs are posted to Target, with their limits, which
	// Prepare sets. Their Limits have Push and Retain.
	Pushed map[string]history.Limits
	Target *Target

	Producers     int // over HTTP, one job at a time
	BulkProducers int // over HTTP, a batch at a time
	Importers     int // over HTTP, a batch at a time
	Consumers     int // over HTTP
	Streamers     int // over HTTP, with a stream
	Patient       int // consumers over HTTP, of Awaited
	Readers       int // over HTTP
	Pinned        int // readers over HTTP that keep to one node
	Editors       int // over HTTP
	Movers        int // over HTTP, of editors' jobs
	Limiteds      int // producers over HTTP, to topics with limits
	TenantLoads   int // producers over HTTP, to topics of namespaces
	Pausers       int // over HTTP
	PushProducers int // over HTTP, to topics with a target
	TokenHolders  int // over HTTP, of tokens that end
	TubeProducers int // over beanstalkd, pipelined
	TubeConsumers int // over beanstalkd

	// Think is the mean pause of a client between two calls, and many times that for
	// clients that add many jobs with a call. Consumers wait for jobs instead. It bounds
	// the rate, so that consumers keep up: a queue with a backlog delivers late, and then
	// no delivery is ever too early.
	Think time.Duration
	Seed  uint64 // of the clients' choices
	// Name is the prefix of every job's name, so that runs on one cluster do not conflict.
	Name string
}

// The delays and leases of jobs. They are short, so that many redeliveries and delays happen
// during faults, and the drain is quick. Those of beanstalkd are whole seconds.
const (
	maxDelay = 2 * time.Second
	jobTTR   = 2 * time.Second
	// overrun is how long past its deadline a slow consumer keeps a job.
	overrun = 500 * time.Millisecond
)

// client is one client of the load. It runs until its context ends.
type client interface{ run(context.Context) }

// Run generates load until ctx ends. Then it waits for the calls in flight, which have a
// timeout of a few seconds.
func Run(ctx context.Context, c Config) {
	var clients sync.WaitGroup
	id := 0
	start := func(n int, make func(id int, c Config) client) {
		for range n {
			one := make(id, c)
			id++
			clients.Go(func() { one.run(ctx) })
		}
	}
	start(c.Producers, newProducer)
	start(c.BulkProducers, newBulkProducer)
	start(c.Importers, newImporter)
	start(c.Consumers, newConsumer)
	start(c.Streamers, newStreamer)
	start(c.Patient, newPatient)
	start(min(c.Patient, 1), newAwaitedProducer)
	start(c.Readers, newReader)
	start(c.Pinned, newPinned)
	start(c.Editors, newEditor)
	start(c.Movers, newMover)
	start(c.Limiteds, newLimitedProducer)
	start(c.TenantLoads, newTenantProducer)
	start(c.Pausers, newPauser)
	start(c.PushProducers, newPushProducer)
	start(c.TokenHolders, newTokenHolder)
	start(c.TubeProducers, newTubeProducer)
	start(c.TubeConsumers, newTubeConsumer)
	clients.Wait()
}

// clients returns the number of clients that Run starts. The next number is free.
func (c Config) clients() int {
	return c.Producers + c.BulkProducers + c.Importers + c.Consumers + c.Streamers + c.Patient + min(c.Patient, 1) + c.Readers + c.Pinned + c.Editors + c.Movers + c.Limiteds + c.TenantLoads + c.Pausers + c.PushProducers + c.TokenHolders + c.TubeProducers + c.TubeConsumers
}

// topics returns all topics that may have jobs.
func (c Config) topics() []string { return slices.Concat(c.reserved(), c.pushed()) }

// reserved returns the topics that clients reserve from.
func (c Config) reserved() []string {
	topics := slices.Concat(c.consumed(), c.Tubes)
	if c.Awaited != "" {
		topics = append(topics, c.Awaited)
	}
	return topics
}

// added returns the topics that producers add to.
func (c Config) added() []string { return slices.Concat(c.Topics, c.Tubes) }

// consumed returns the topics that HTTP consumers reserve from.
func (c Config) consumed() []string {
	topics := slices.Concat(c.Topics, c.Edited, c.limited(), c.tenants())
	if c.Scheduled != "" {
		topics = append(topics, c.Scheduled)
	}
	return topics
}

// limited returns the topics with limits.
func (c Config) limited() []string { return slices.Sorted(maps.Keys(c.Limited)) }

// tenants returns the topics of the namespaces.
func (c Config) tenants() (topics []string) {
	for _, prefix := range slices.Sorted(maps.Keys(c.Tenants)) {
		topics = append(topics, prefix+"a", prefix+"b")
	}
	return topics
}

// edits reports whether editors add to a topic.
func (c Config) edits(topic string) bool { return slices.Contains(c.Edited, topic) }

func random(c Config, client int) *rand.Rand {
	return rand.New(rand.NewPCG(c.Seed, uint64(client)))
}

// between returns a random duration in [0, limit).
func between(r *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(limit)))
}

// think is a client's pause between two calls. A client that does much with a call pauses
// several times as long.
func think(ctx context.Context, c Config, r *rand.Rand, times time.Duration) bool {
	return sleep.For(ctx, between(r, 2*times*c.Think))
}
