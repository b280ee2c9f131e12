package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// DialRPC connects to the RPC server of a server at address, host:port. It resolves the
// name each time. It blocks until the node has accepted, ctx ends, or for 5 s after the
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

func (m *Mux) dialWithin(address string, h header, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return m.dial(ctx, address, h)
}

func (m *Mux) dial(ctx context.Context, address string, h header) (net.Conn, error) {
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := m.track(raw)
	if c == nil {
		return nil, net.ErrClosed
	}
	h.clusterID, h.from = m.o.ClusterID(), m.o.ServerID
	err = introduce(ctx, raw, h)
	if err == nil {
		err = boundSilence(raw, h.kind.silence())
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("connect to node %s: %w", address, err)
	}
	return c, nil
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
