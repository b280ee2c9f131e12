package localcluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The authority of a secure cluster's nodes is replaced in three steps, between which all of them
// must have read their files again: NextAuthority, IssueAll, TrustOnlyNewest.

// NextAuthority makes nodes trust another authority beside the present one, and returns a certificate
// of it that no node has.
func (c *Cluster) NextAuthority(ctx context.Context) (tls.Certificate, error) {
	next := filepath.Join(c.keys(), "next")
	if err := errors.Join(os.RemoveAll(next), os.MkdirAll(next, 0o700)); err != nil {
		return tls.Certificate{}, err
	}
	if err := c.tarry(ctx, "cert", "ca", "--cluster", "local", "--dir", next); err != nil {
		return tls.Certificate{}, err
	}
	if err := c.trust(c.authority(), filepath.Join(next, "ca.crt")); err != nil {
		return tls.Certificate{}, err
	}
	return c.probe(ctx, next)
}

// PresentCertificate returns a certificate of the present authority that no node has.
func (c *Cluster) PresentCertificate(ctx context.Context) (tls.Certificate, error) {
	return c.probe(ctx, c.keys())
}

func (c *Cluster) probe(ctx context.Context, from string) (of tls.Certificate, err error) {
	dir, err := os.MkdirTemp(c.keys(), "probe-")
	if err != nil {
		return tls.Certificate{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := c.sign(ctx, from, dir, "node", "probe"); err != nil {
		return tls.Certificate{}, err
	}
	return tls.LoadX509KeyPair(filepath.Join(dir, "node-probe.crt"), filepath.Join(dir, "node-probe.key"))
}

// sign makes a certificate of the authority in a directory.
func (c *Cluster) sign(ctx context.Context, from, dir string, args ...string) error {
	return c.tarry(ctx, append(append([]string{"cert"}, args...), "--ca", filepath.Join(from, "ca.crt"), "--ca-key", filepath.Join(from, "ca.key"), "--dir", dir)...)
}

// IssueAll lets the authority of NextAuthority sign from now on, and gives all nodes its certificates.
func (c *Cluster) IssueAll() error {
	c.signing.Lock()
	var errs []error
	for _, name := range []string{"ca.key", "ca.crt"} {
		err := os.Rename(filepath.Join(c.keys(), "next", name), filepath.Join(c.keys(), name))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // it was called before
		}
		errs = append(errs, err)
	}
	c.signing.Unlock()
	for _, n := range c.Nodes() { // one that is added meanwhile has a new one
		errs = append(errs, c.issue(n))
	}
	return errors.Join(errs...)
}

// TrustOnlyNewest makes nodes trust only the authority that signs.
func (c *Cluster) TrustOnlyNewest() error { return c.trust(c.authority()) }

// trust replaces the authorities that nodes trust.
func (c *Cluster) trust(files ...string) error {
	var all []byte
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return fmt.Errorf("read an authority: %w", err)
		}
		all = append(all, data...)
	}
	return replaceFile(c.trusted(), all)
}

func replaceFile(path string, data []byte) error {
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// keys is the directory with the node's certificates and gossip keys.
func (n *Node) keys() string { return filepath.Join(n.dir, "keys") }

// issue makes the certificates of a node, in the place of those that it has.
func (c *Cluster) issue(n *Node) (err error) {
	c.signing.Lock()
	defer c.signing.Unlock()
	made := filepath.Join(n.keys(), "new")
	if err := os.MkdirAll(made, 0o700); err != nil {
		return fmt.Errorf("make a directory for keys: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(made)) }()
	ctx := context.Background() // they call nobody
	if err := errors.Join(c.sign(ctx, c.keys(), made, "node", n.ID), c.sign(ctx, c.keys(), made, "server", n.ID, "--host", n.host)); err != nil {
		return err
	}
	for _, kind := range []string{"node-", "server-"} {
		for _, end := range []string{".key", ".crt"} {
			name := kind + n.ID + end
			if err := os.Rename(filepath.Join(made, name), filepath.Join(n.keys(), name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyGossipKeys gives a node the gossip keys of the cluster: those of the node that changed them last.
func (c *Cluster) copyGossipKeys(n *Node) error {
	from, changed := c.gossipKeys(), time.Time{}
	for _, other := range c.nodes {
		file := filepath.Join(other.keys(), "gossip.keys")
		if info, err := os.Stat(file); err == nil && other != n && info.ModTime().After(changed) {
			from, changed = file, info.ModTime()
		}
	}
	keys, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(n.keys(), "gossip.keys"), keys)
}

// Hangup makes a node look at its files at once.
func (n *Node) Hangup() error {
	_, err := n.signal(syscall.SIGHUP)
	return err
}

// handshakeLimit bounds a handshake with a node, and the wait for its verdict on a certificate.
const handshakeLimit = 2 * time.Second

// Shown returns what a node shows on its cluster port, and whether it accepts a certificate there.
func (c *Cluster) Shown(ctx context.Context, n *Node, pair tls.Certificate) (leaf *x509.Certificate, accepts bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeLimit)
	defer cancel()
	host, _, err := net.SplitHostPort(n.HTTP)
	if err != nil {
		return nil, false, err
	}
	_, port, err := net.SplitHostPort(n.Cluster)
	if err != nil {
		return nil, false, err
	}
	// Who is at the other end is what the caller asks.
	d := tls.Dialer{Config: &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"tarry/1"}, InsecureSkipVerify: true}}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, false, err
	}
	defer conn.Close()
	leaf = conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
	// A node that refuses the certificate says so at once. One that accepts it waits for a greeting, and
	// closes the connection when what comes is none.
	deadline, _ := ctx.Deadline()
	for _, greeting := range []string{"", strings.Repeat("x", 64)} {
		if greeting != "" {
			err = conn.SetDeadline(deadline)
		} else {
			err = conn.SetDeadline(time.Now().Add(handshakeLimit / 8))
		}
		if err != nil {
			return nil, false, err
		}
		if _, err := io.WriteString(conn, greeting); err != nil {
			return nil, false, err
		}
		_, err = conn.Read(make([]byte, 1))
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
			return leaf, false, nil
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	return leaf, true, nil
}
