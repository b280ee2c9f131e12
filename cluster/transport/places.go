package transport

import (
	"net"
	"net/netip"
	"sync"
)

// places bounds the connections that are open at a time, and those of one address to
// half of them: whoever opens as many as it can must not shut out the other nodes.
type places struct {
	limit, each int

	mu   sync.Mutex
	open int
	byIP map[netip.Addr]int // none is 0
}

func newPlaces(limit int) *places {
	return &places{limit: limit, each: (limit + 1) / 2, byIP: make(map[netip.Addr]int)}
}

// enter counts one more connection from an address, if the limits allow it. leave
// takes it back.
func (p *places) enter(from netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open >= p.limit || p.byIP[from] >= p.each {
		return false
	}
	p.open++
	p.byIP[from]++
	return true
}

func (p *places) leave(from netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
	if p.byIP[from]--; p.byIP[from] == 0 {
		delete(p.byIP, from)
	}
}

// addressOf is the address that a connection comes from. Of IPv6 all of one /64 are
// one address: a machine may use any of them.
func addressOf(c net.Conn) netip.Addr {
	t, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip := t.AddrPort().Addr().Unmap().WithZone("")
	if ip.Is6() {
		prefix, _ := ip.Prefix(64) // of IPv6 there is always one
		return prefix.Addr()
	}
	return ip
}
