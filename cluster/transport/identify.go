package transport

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"tarry/cluster/nodetls"
	"tarry/cluster/raftconfig"
)

// greet reads the header of an accepted connection. If the caller speaks TLS and this node
// accepts that, c is secured first, and nodeID is what the caller has proved to be.
func (m *Mux) greet(c *conn, deadline time.Time) (h header, nodeID string, err error) {
	if m.o.TLS.Mode == nodetls.Off {
		h, err = readHeader(c)
		return h, "", err
	}
	var first [1]byte
	if _, err := io.ReadFull(c, first[:]); err != nil {
		return header{}, "", err
	}
	if !nodetls.Begins(first[0]) {
		h, err = readHeader(io.MultiReader(bytes.NewReader(first[:]), c))
		return h, "", err
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	t, nodeID, err := m.o.TLS.Identity.Accept(ctx, c.Conn, first[:])
	if err != nil {
		return header{}, "", err
	}
	c.Conn = t
	c.session.Store(m.o.TLS.Identity.AcceptedSession(t, nodeID))
	h, err = readHeader(t)
	return h, nodeID, err
}

// identify compares the ids that a header claims with the node id that a certificate has
// proved; that is empty for a plain connection.
func (m *Mux) identify(h header, nodeID string) (status, string) {
	if nodeID == "" {
		if m.o.TLS.Mode == nodetls.Require {
			return statusIdentity, fmt.Sprintf("server %.255q called without TLS, and this node has --cluster-tls-mode=require", h.from)
		}
		return statusOK, ""
	}
	if claimed := raftconfig.NodeID(h.from); claimed != nodeID {
		return statusIdentity, fmt.Sprintf("the caller says that it is node %.255q, and its certificate is that of node %q", claimed, nodeID)
	}
	return statusOK, ""
}
