package audit

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// repeatAfter is how long repeated denials of one kind are counted before a line says how many
	// there were. So who has no rights, or no token, cannot fill the disk: the log grows by
	// three times maxKinds lines in that time at most.
	repeatAfter = time.Minute
	// maxKinds bounds the kinds of denials that are told apart, and kindsOfAddress those of one
	// address, so that a few addresses do not use up all. Beyond the latter the denials of an
	// address are one kind, beyond the former those of all addresses.
	maxKinds       = 100
	kindsOfAddress = 20
)

// kind is what makes denials the same.
type kind struct{ address, principal, via, call, resource, verb, outcome, reason string }

// repeats counts denials that are repeated. The zero value is ready.
type repeats struct {
	mu        sync.Mutex
	kinds     map[kind]*repeated
	addresses map[string]int // kinds of an address
}

// repeated is how often a kind was denied since the last line.
type repeated struct {
	last  Record
	times int
}

// pass reports whether a denial is the first of its kind, whose line is written at once; others
// are counted.
func (c *repeats) pass(r Record) bool {
	k := kind{Network(r.Remote), r.Principal, r.Via, r.Call, r.Resource, r.Verb, r.Outcome, r.Reason}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds == nil {
		c.kinds, c.addresses = map[kind]*repeated{}, map[string]int{}
	}
	first := false
	if c.kinds[k] == nil {
		switch {
		case len(c.kinds) < maxKinds && c.addresses[k.address] < kindsOfAddress:
			first = true
			c.addresses[k.address]++
		case c.addresses[k.address] > 0:
			k = kind{address: k.address, outcome: r.Outcome}
			r = Record{Remote: k.address, Call: several, Outcome: r.Outcome, Times: r.Times}
		default:
			k = kind{outcome: r.Outcome}
			r = Record{Call: several, Outcome: r.Outcome, Times: r.Times}
		}
	}
	if c.kinds[k] == nil {
		c.kinds[k] = &repeated{}
	}
	if !first {
		c.kinds[k].last = r
		c.kinds[k].times += max(1, r.Times)
	}
	return first
}

// several is the call of a line that stands for several kinds of denials.
const several = "several"

// take returns a record of each kind that was repeated, and forgets the others.
func (c *repeats) take() (records []Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kinds := c.kinds // at most twice maxKinds: each address in it has a kind of its own
	c.kinds, c.addresses = nil, nil
	for _, one := range kinds {
		if one.times > 0 {
			one.last.Times = one.times
			records = append(records, one.last)
		}
	}
	return records
}

// Network returns the address of a client without the port; of IPv6 the network, because a
// client has all addresses of one.
func Network(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() && !addr.Is4In6() {
		if of, err := addr.WithZone("").Prefix(64); err == nil {
			return of.String()
		}
	}
	return host
}
