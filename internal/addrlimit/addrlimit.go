// Package addrlimit bounds the connections or bytes that all clients of a port hold, and
// those of each address, so that one machine cannot exclude the others.
// golang.org/x/sync/semaphore has no limit for each address. Start at New.
package addrlimit

import (
	"net/netip"
	"sync"
)

// Limit is safe for concurrent use. Its methods do not block.
type Limit struct {
	total, each int64

	mu     sync.Mutex
	held   int64
	byAddr map[netip.Addr]int64 // none is 0
}

// New returns a limit for all clients together, and for those of each address.
func New(total, each int64) *Limit {
	return &Limit{total: total, each: each, byAddr: make(map[netip.Addr]int64)}
}

// Total returns the limit for all clients together.
func (l *Limit) Total() int64 { return l.total }

// Each returns the limit for the clients of one address.
func (l *Limit) Each() int64 { return l.each }

// Held returns how much all clients hold.
func (l *Limit) Held() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// Share is what the clients of one address may hold.
type Share struct {
	of   *Limit
	addr netip.Addr // the zero address has no limit of its own
}

// Of returns the share of the client at host:port. Clients whose address is not known,
// as at a Unix socket, have no limit of their own. The IPv6 addresses of one /64 are
// one client, which may use any of them.
func (l *Limit) Of(hostPort string) Share {
	ap, err := netip.ParseAddrPort(hostPort)
	if err != nil {
		return Share{of: l}
	}
	addr := ap.Addr().Unmap().WithZone("")
	if addr.Is6() {
		prefix, _ := addr.Prefix(64) // never fails for IPv6
		addr = prefix.Addr()
	}
	return Share{l, addr}
}

// TryAcquire acquires n and reports true, or acquires nothing and reports false.
func (s Share) TryAcquire(n int64) bool {
	l := s.of
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.byAddr[s.addr] + n
	if l.held+n > l.total || s.addr.IsValid() && own > l.each {
		return false
	}
	l.held += n
	if s.addr.IsValid() && own > 0 {
		l.byAddr[s.addr] = own
	}
	return true
}

// Release gives back n of what was acquired.
func (s Share) Release(n int64) {
	if n == 0 { // also for a zero Share
		return
	}
	l := s.of
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held -= n
	if s.addr.IsValid() {
		if l.byAddr[s.addr] -= n; l.byAddr[s.addr] == 0 {
			delete(l.byAddr, s.addr)
		}
	}
}
