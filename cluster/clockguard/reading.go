package clockguard

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// reading is what a server's clock said.
type reading struct {
	wall   time.Time     // without a monotonic reading
	at     time.Time     // when, by this node's monotonic clock
	within time.Duration // how far at may be wrong: half of the round trip
}

// then is what the clock says at another instant, if it runs at the right pace.
func (r reading) then(at time.Time) time.Time { return r.wall.Add(at.Sub(r.at)) }

// readings holds the last reading of each server.
type readings struct {
	mu sync.Mutex
	of map[raft.ServerID]reading
}

// record notes the answer to a call that lasted from one instant to another of the
// monotonic clock.
func (c *readings) record(id raft.ServerID, wall, from, to time.Time) {
	half := to.Sub(from) / 2
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[raft.ServerID]reading)
	}
	c.of[id] = reading{wall: wall, at: from.Add(half), within: half}
}

// since returns those that are not older than the instant, and forgets the others.
func (c *readings) since(oldest time.Time) map[raft.ServerID]reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	fresh := make(map[raft.ServerID]reading)
	for id, r := range c.of {
		if r.at.Before(oldest) {
			delete(c.of, id)
			continue
		}
		fresh[id] = r
	}
	return fresh
}
