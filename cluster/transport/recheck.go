package transport

import (
	"maps"
	"slices"
	"time"

	"tarry/cluster/nodetls"
	"tarry/cluster/raftconfig"
	"tarry/cluster/report"
)

// recheckEvery is how often the certificates of open connections are verified again. A
// connection outlives the end of its certificate, or an authority that is withdrawn, by
// as much. A bound on the age of connections would do the same, but end healthy ones, too.
const recheckEvery = time.Minute

// recheck verifies open connections until the Mux is closed.
func (m *Mux) recheck() {
	t := time.NewTicker(recheckEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			m.closeUnproved()
		case <-m.done:
			return
		}
	}
}

// closeUnproved closes the connections whose certificate would not be accepted now.
func (m *Mux) closeUnproved() {
	for _, c := range m.sessions() {
		if err := c.session.Load().Check(); err != nil {
			m.o.Logger.Warn("closes a connection to a node, because its certificate is not valid any more", "other_node", c.session.Load().NodeID, "error", err)
			c.raw.Close() // its user notices and closes the rest
		}
	}
}

// sessions returns the connections with TLS.
func (m *Mux) sessions() []*conn {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Values(m.conns)), func(c *conn) bool { return c.session.Load() == nil })
}

// Connections counts the open connections, in both directions.
func (m *Mux) Connections() (plain, secured int) {
	secured = len(m.sessions())
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.conns) - secured, secured
}

// CertificateProblems returns what operators should know about this node's certificate and
// those of the nodes that it is connected to, sorted.
func (m *Mux) CertificateProblems(now time.Time) []*report.Problem {
	if m.o.TLS.Mode == nodetls.Off {
		return nil
	}
	ends := map[string]time.Time{raftconfig.NodeID(m.o.ServerID): m.o.TLS.Identity.Source().Current().Certificate.Leaf.NotAfter}
	for _, c := range m.sessions() {
		s := c.session.Load()
		if s.Ends().After(ends[s.NodeID]) { // connections of before a renewal do not count
			ends[s.NodeID] = s.Ends()
		}
	}
	var out []*report.Problem
	for _, id := range slices.Sorted(maps.Keys(ends)) {
		if p := nodetls.EndsSoon(id, ends[id], now); p != nil {
			out = append(out, p)
		}
	}
	return out
}
