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

// names is the name service of the nodes: in every namespace it answers on the
// loopback what the nodes' names mean at the moment. A file of hosts would do,
// but programs read it seconds late, and platforms that move addresses have a name
// service.
type names struct {
	mu    sync.Mutex
	known map[string]netip.Addr
	conns []net.PacketConn
	work  sync.WaitGroup
}

// namePort is where resolvers ask.
const namePort = "127.0.0.1:53"

// resolverConfig makes them ask there, and nowhere else.
const resolverConfig = "nameserver 127.0.0.1\nsearch .\noptions timeout:1 attempts:2\n"

// set replaces what is known.
func (s *names) set(known map[string]netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = known
}

// serve answers on c until close.
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
			if reply, err := s.answer(buf[:n]); err == nil {
				_, _ = c.WriteTo(reply, from) // who is gone asks no more
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

// answer answers the first question of a query. Names have addresses of IPv4 only
// and may not be kept.
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
	s.mu.Unlock()
	m := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: asked.ID, Response: true, Authoritative: true,
			RecursionDesired: asked.RecursionDesired, RecursionAvailable: true,
		},
		Questions: []dnsmessage.Question{q},
	}
	switch {
	case !known:
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA && q.Class == dnsmessage.ClassINET:
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class},
			Body:   &dnsmessage.AResource{A: addr.As4()},
		}}
	}
	return m.Pack()
}
