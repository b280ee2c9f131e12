package main

import (
	"context"
	"time"
)

// queue is one connection to one topic of a system. It belongs to one goroutine. Calls
// return when what they did is as durable as the system makes it, and fail when ctx of
// their connection ends or after a bounded time.
type queue interface {
	// Put adds a job; without a due time it is due now.
	Put(body string, due time.Time) error
	// PutMany adds jobs as the system's batch or pipeline; all are acknowledged.
	PutMany(bodies []string, due func(i int) time.Time) error
	// Reserve waits a second at most; the body is "" when no job came.
	Reserve() (body string, err error)
	// Delete removes the job reserved last.
	Delete() error
	Close()
}

// worker is a queue that removes a job and takes the next in one call.
type worker interface {
	DeleteAndReserve() (body string, err error)
}

// system is what is compared.
type system struct {
	key     string // in the results
	name    string // on the page
	durable string // what a reply means
	command []string
	// version asks the program for its version; an error is the reason why the system is
	// skipped.
	version func(ctx context.Context) (string, error)
	// start runs new processes with their data below dir and waits until they serve. With
	// lazy they do not sync each write, so that a million jobs are there soon; systems
	// that cannot, sync.
	start func(ctx context.Context, dir string, lazy bool) (instance, error)
}

// instance is a system that runs.
type instance interface {
	// topic makes a topic usable.
	topic(ctx context.Context, name string) error
	// open is connection number i to a topic. It ends with ctx.
	open(ctx context.Context, topic string, i int) (queue, error)
	pids() []int
	stop() error
}
