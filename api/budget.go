package api

import (
	"hash/maphash"
	"net/netip"
	"sync/atomic"
)

// Budget bounds what the clients of a port hold together, in bytes say, and what those
// of one address hold of it: half, so that one machine cannot shut out all others. It
// is safe for concurrent use, and its methods do not block: a claim that does
// not fit fails at once. golang.org/x/sync/semaphore has neither a limit for each
// address nor a count that a metric could show.
type Budget struct {
	limit int64
	held  atomic.Int64

	// byAddress counts what addresses hold, under a hash that nobody outside knows.
	// Addresses with the same hash share a limit. So its size is fixed and entries need
	// no removal.
	byAddress [4096]atomic.Int64
	seed      maphash.Seed
}

// NewBudget returns a budget of limit.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit, seed: maphash.MakeSeed()} }

// Held returns how much is claimed.
func (b *Budget) Held() int64 { return b.held.Load() }

// Share is what one client may claim of a budget.
type Share struct {
	all *Budget
	own *atomic.Int64 // nil: no limit of its own
}

// Of is the share of the client at an address. Those whose address is not known, as
// at a Unix socket, have no limit of their own. Of IPv6 addresses those of one /64 are
// one client, which may use any of them.
func (b *Budget) Of(client netip.Addr) Share {
	if !client.IsValid() {
		return Share{all: b}
	}
	client = client.Unmap().WithZone("")
	if client.Is6() {
		prefix, _ := client.Prefix(64) // of IPv6 there is always one
		client = prefix.Addr()
	}
	return Share{b, &b.byAddress[maphash.Comparable(b.seed, client)%uint64(len(b.byAddress))]}
}

// AddressOf returns the address in host:port, or the zero address.
func AddressOf(hostPort string) netip.Addr {
	a, _ := netip.ParseAddrPort(hostPort)
	return a.Addr()
}

// Claim takes n, or nothing and reports false.
func (s Share) Claim(n int64) bool {
	if s.own != nil && s.own.Add(n) > s.all.limit/2 {
		s.own.Add(-n)
		return false
	}
	if s.all.held.Add(n) > s.all.limit {
		s.Release(n)
		return false
	}
	return true
}

// Release gives back n of what was claimed.
func (s Share) Release(n int64) {
	if n == 0 {
		return
	}
	if s.own != nil {
		s.own.Add(-n)
	}
	s.all.held.Add(-n)
}
