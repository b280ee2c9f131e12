package transport

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// nameTimeout bounds the lookup of a node's name when another address is known.
	nameTimeout = 300 * time.Millisecond
	// lastTimeout bounds the attempt to connect to the other address.
	lastTimeout = 2 * time.Second
	// maxKnown bounds the servers whose addresses are kept.
	maxKnown = 1024
)

// lastAddresses has, by server, the IP address and port at which it accepted a connection last.
// A node whose name cannot be resolved is dialed there, so that a cluster that runs needs no
// name server to elect a leader. The server that accepts checks that it is the one that is meant.
type lastAddresses struct {
	mu    sync.Mutex
	known map[string]string
}

func (l *lastAddresses) of(serverID string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known[serverID]
}

func (l *lastAddresses) set(serverID, address string) {
	if serverID == "" { // whoever replies
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil || len(l.known) >= maxKnown {
		l.known = make(map[string]string)
	}
	l.known[serverID] = address
}

// dialTCP connects to address or, if that is a name that cannot be resolved, to where the server
// was last.
func (m *Mux) dialTCP(ctx context.Context, serverID, address string) (net.Conn, error) {
	if last := m.last.of(serverID); last != "" && !m.resolves(ctx, address) {
		// The name may only take long, and the server be elsewhere now.
		if c, err := (&net.Dialer{Timeout: lastTimeout}).DialContext(ctx, "tcp", last); err == nil {
			return c, nil
		}
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// resolves reports whether the name in address has an address now.
func (m *Mux) resolves(ctx context.Context, address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return true // the dial says what is wrong
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, nameTimeout)
	defer cancel()
	_, err = m.lookup(ctx, host)
	return err == nil
}
