package workload

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"tarry/chaos/history"
)

// Config says how much load of what kind. The zero value of a number means none.
type Config struct {
	Addrs     []string // host:port of the nodes' HTTP; some may be down
	Recorder  *history.Recorder
	Topics    []string
	Producers int
	Consumers int
	// Think is the mean pause of a producer between two jobs. It bounds the rate.
	Think time.Duration
	Seed  uint64 // of the clients' choices
	// Name starts every job id, so that runs on one cluster do not meet.
	Name string
}

// The times that jobs carry. They are short, so that redeliveries and delays
// happen many times while faults come and go, and the drain is quick.
const (
	maxDelay = 2 * time.Second
	jobTTR   = 2 * time.Second
	// overrun is how long past its deadline a slow consumer keeps a job.
	overrun = 500 * time.Millisecond
)

// Run puts the cluster under load until ctx ends, then waits for the calls in
// flight, which have their own bound of a few seconds.
func Run(ctx context.Context, c Config) {
	var clients sync.WaitGroup
	for i := range c.Producers {
		clients.Go(func() { newProducer(i, c).run(ctx) })
	}
	for i := range c.Consumers {
		clients.Go(func() { newConsumer(c.Producers+i, c).run(ctx) })
	}
	clients.Wait()
}

func random(c Config, client int) *rand.Rand {
	return rand.New(rand.NewPCG(c.Seed, uint64(client)))
}

// between is a random duration in [0, limit).
func between(r *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(limit)))
}
