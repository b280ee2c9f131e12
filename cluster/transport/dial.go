package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"tarry/cluster/nodetls"
	"tarry/cluster/raftconfig"
)

// DialRPC connects to the gRPC server of a server at address, host:port. It resolves the
// name each time; while that fails, it connects to where the server was last. It blocks until the node has accepted, ctx ends, or for 5 s after the
// TCP connection is open. The error of a refusal wraps ErrOtherCluster, ErrOtherServer,
// ErrVersion, ErrBusy or ErrNotTarry.
func (m *Mux) DialRPC(ctx context.Context, serverID, address string) (net.Conn, error) {
	return m.dial(ctx, address, header{kind: kindRPC, to: serverID})
}

// Target returns what a Raft stream layer dials: a server at an address. Raft's
// transport pools its connections by that, so connections to two servers that had the
// same address are not mixed up.
func Target(serverID raft.ServerID, address raft.ServerAddress) raft.ServerAddress {
	return raft.ServerAddress(serverID) + "@" + address
}

// SplitTarget is the inverse of Target. The server id is empty if t is only an address.
func SplitTarget(t raft.ServerAddress) (serverID, address string) {
	i := strings.LastIndexByte(string(t), '@') // no address has one
	return string(t[:max(i, 0)]), string(t[i+1:])
}

// DialFrames is DialRPC for calls in frames.
func (m *Mux) DialFrames(ctx context.Context, serverID, address string) (net.Conn, error) {
	return m.dial(ctx, address, header{kind: kindFrames, to: serverID})
}

func (m *Mux) dialWithin(address string, h header, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return m.dial(ctx, address, h)
}

// errNoTLS is wrapped by the error of a dial that failed because of TLS.
var errNoTLS = errors.New("no TLS with the other node")

func (m *Mux) dial(ctx context.Context, address string, h header) (net.Conn, error) {
	h.clusterID, h.from = m.o.ClusterID(), m.o.ServerID
	mode := m.o.TLS.Mode
	c, err := m.connect(ctx, address, h, mode >= nodetls.Prefer)
	if mode == nodetls.Prefer && errors.Is(err, errNoTLS) && ctx.Err() == nil {
		m.o.Logger.Warn("connects to a node without TLS, because TLS failed and --cluster-tls-mode is prefer", "other_node", raftconfig.NodeID(h.to), "address", address, "error", err)
		c, err = m.connect(ctx, address, h, false)
	}
	return c, err
}

// connect makes one attempt, with TLS or without.
func (m *Mux) connect(ctx context.Context, address string, h header, secure bool) (net.Conn, error) {
	raw, err := m.dialTCP(ctx, h.to, address)
	if err != nil {
		return nil, err
	}
	c := m.track(raw)
	if c == nil {
		return nil, net.ErrClosed
	}
	if secure {
		err = m.secure(ctx, c, raftconfig.NodeID(h.to))
	}
	if err == nil {
		err = introduce(ctx, c.Conn, h)
	}
	if secure && nodetls.Refused(err) { // the acceptor judges after the dialer is through
		err = fmt.Errorf("%w: %w", errNoTLS, err)
	}
	if err == nil {
		m.last.set(h.to, raw.RemoteAddr().String())
		err = boundSilence(c.Conn, h.kind.silence())
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("connect to node %s: %w", address, err)
	}
	return c, nil
}

// secure makes TLS of a dialed connection, with the node that was meant.
func (m *Mux) secure(ctx context.Context, c *conn, nodeID string) error {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	t, err := m.o.TLS.Identity.Dial(ctx, c.Conn, nodeID)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoTLS, err)
	}
	c.Conn = t
	c.session.Store(m.o.TLS.Identity.DialedSession(t, nodeID))
	return nil
}

// introduce sends the header and waits for the reply.
func introduce(ctx context.Context, c net.Conn, h header) error {
	deadline := time.Now().Add(handshakeTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := c.SetDeadline(deadline); err != nil {
		return err
	}
	// A cancelled ctx ends the handshake by moving its deadline to the past.
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	err := exchange(c, h)
	if !stop() {
		return errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}

func exchange(c net.Conn, h header) error {
	if err := h.check(); err != nil {
		return err
	}
	if _, err := c.Write(h.append(nil)); err != nil {
		return fmt.Errorf("send the header: %w", err)
	}
	a, err := readAnswer(c)
	if err != nil {
		return err
	}
	if a.status != statusOK {
		return fmt.Errorf("%w: %s", a.status.err(), a.reason)
	}
	// The acceptor accepts a node without a cluster. This node may have received its
	// cluster id since then, so it checks too.
	if a.clusterID != "" && h.clusterID != "" && a.clusterID != h.clusterID {
		return fmt.Errorf("%w: a node of cluster %s replied to a node of cluster %s", ErrOtherCluster, a.clusterID, h.clusterID)
	}
	return nil
}
