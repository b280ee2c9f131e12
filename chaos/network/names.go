package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// names is the nodes' DNS server. In every namespace it resolves the nodes' names to their
// present addresses, on loopback. Programs would read a hosts file seconds late, and
// platforms that change addresses have a DNS server.
type names struct {
	mu    sync.Mutex
	known map[string]netip.Addr
	away  Outage
	conns []net.PacketConn
	work  sync.WaitGroup
}

// namePort is the port of DNS.
const namePort = "127.0.0.1:53"

// resolverConfig makes resolvers use only this server.
const resolverConfig = "nameserver 127.0.0.1\nsearch .\noptions timeout:1 attempts:2\n"

// set replaces the addresses.
func (s *names) set(known map[string]netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = known
}

// serve serves c until close.
func (s *names) serve(c net.PacketConn) {
	s.mu.Lock()
	s.conns = append(s.conns, c)
	s.mu.Unlock()
	s.work.Go(func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return // closed
			}
			if reply, err := s.answer(buf[:n]); err == nil && reply != nil {
				_, _ = c.WriteTo(reply, from) // the client may have gone
			}
		}
	})
}

func (s *names) close() error {
	s.mu.Lock()
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	var errs []error
	for _, c := range conns {
		errs = append(errs, c.Close())
	}
	s.work.Wait()
	return errors.Join(errs...)
}

// Outage is how the DNS server fails.
type Outage int

const (
	// Silent replies to nothing, so that resolvers wait until they give up.
	Silent Outage = 1 + iota
	// Failing replies that it has failed.
	Failing
	// Forgetful replies that there is no such name.
	Forgetful
)

// FailNames makes the DNS server of all nodes fail until heal is called.
func (n *Network) FailNames(how Outage) (heal func()) {
	n.names.fail(how)
	return func() { n.names.fail(0) }
}

func (s *names) fail(how Outage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = how
}

// answer returns the reply to the first question of a query; nil: there is none. Names have
// only IPv4 addresses, and a TTL of 0.
func (s *names) answer(query []byte) ([]byte, error) {
	var p dnsmessage.Parser
	asked, err := p.Start(query)
	if err != nil {
		return nil, fmt.Errorf("a query: %w", err)
	}
	q, err := p.Question()
	if err != nil {
		return nil, fmt.Errorf("a query: %w", err)
	}
	s.mu.Lock()
	addr, known := s.known[strings.TrimSuffix(strings.ToLower(q.Name.String()), ".")]
	away := s.away
	s.mu.Unlock()
	if away == Silent {
		return nil, nil
	}
	m := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: asked.ID, Response: true, Authoritative: true,
			RecursionDesired: asked.RecursionDesired, RecursionAvailable: true,
		},
		Questions: []dnsmessage.Question{q},
	}
	switch {
	case away == Failing:
		m.RCode = dnsmessage.RCodeServerFailure
	case !known || away == Forgetful:
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA && q.Class == dnsmessage.ClassINET:
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class},
			Body:   &dnsmessage.AResource{A: addr.As4()},
		}}
	}
	return m.Pack()
}
