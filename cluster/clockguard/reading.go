package clockguard

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// reading is a server's time at an instant.
type reading struct {
	wall   time.Time     // without a monotonic reading
	at     time.Time     // when, by this node's monotonic clock
	within time.Duration // the error of at: half of the round trip
}

// then returns the clock's time at another instant, if it runs at the right rate.
func (r reading) then(at time.Time) time.Time { return r.wall.Add(at.Sub(r.at)) }

// readings holds the last reading of each server.
type readings struct {
	mu sync.Mutex
	of map[raft.ServerID]reading
}

// record stores the time in the reply to a call that lasted from one instant of the
// monotonic clock to another.
func (c *readings) record(id raft.ServerID, wall, from, to time.Time) {
	half := to.Sub(from) / 2
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[raft.ServerID]reading)
	}
	c.of[id] = reading{wall: wall, at: from.Add(half), within: half}
}

// since returns the readings that are not older than oldest, and removes the others.
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
