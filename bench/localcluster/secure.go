package localcluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Access is what a client of the cluster needs. The zero value is for an open cluster.
type Access struct {
	TLS   *tls.Config // nil: plain text
	Token string      // empty: none
}

// Access returns what clients of the cluster need now: no token before Enforce.
func (c *Cluster) Access() Access {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.access
}

// keys is the directory with the authority of a secure cluster and its key.
func (c *Cluster) keys() string { return filepath.Join(c.options.Dir, "keys") }

func (c *Cluster) authority() string { return filepath.Join(c.keys(), "ca.crt") }

// trusted is the file with the authorities that nodes trust: more than one while it is replaced.
func (c *Cluster) trusted() string { return filepath.Join(c.keys(), "trusted.crt") }

func (c *Cluster) gossipKeys() string { return filepath.Join(c.keys(), "gossip.keys") }

// tarry runs a command of the nodes' binary.
func (c *Cluster) tarry(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, c.options.Binary, args...)
	cmd.Env = environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("tarry %s: %w: %s", strings.Join(args[:2], " "), err, out)
	}
	return nil
}

// makeAuthority makes what all nodes of a secure cluster share, and lets calls trust it.
func (c *Cluster) makeAuthority() error {
	if err := os.MkdirAll(c.keys(), 0o700); err != nil {
		return fmt.Errorf("make a directory for keys: %w", err)
	}
	ctx := context.Background() // they call nobody
	err := c.tarry(ctx, "cert", "ca", "--cluster", "local", "--dir", c.keys())
	if err == nil {
		err = c.tarry(ctx, "keygen", c.gossipKeys())
	}
	if err != nil {
		return err
	}
	if err := c.trust(c.authority()); err != nil {
		return err
	}
	ca, err := os.ReadFile(c.authority())
	if err != nil {
		return fmt.Errorf("read the authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return errors.New("the authority's file has no certificate")
	}
	if !c.options.SecureClients {
		return nil
	}
	c.access.TLS = &tls.Config{RootCAs: pool}
	c.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: c.access.TLS}}
	return nil
}

// secure makes the certificates of a node and its copy of the gossip keys, which it may replace,
// and returns the arguments that close its ports.
func (c *Cluster) secure(n *Node) ([]string, error) {
	dir := n.keys()
	if err := c.issue(n); err != nil {
		return nil, err
	}
	if err := c.copyGossipKeys(n); err != nil {
		return nil, fmt.Errorf("copy the gossip keys: %w", err)
	}
	var args []string
	closePort := func(port, kind string) {
		pair := filepath.Join(dir, kind+"-"+n.ID)
		args = append(args, "--"+port+"-tls-mode", "require", "--"+port+"-tls-cert", pair+".crt", "--"+port+"-tls-key", pair+".key")
	}
	if c.options.SecureNodes {
		args = append(args, "--gossip-keys-file", filepath.Join(dir, "gossip.keys"), "--cluster-tls-ca", c.trusted())
		closePort("cluster", "node")
	}
	if c.options.SecureClients {
		closePort("http", "server")
		closePort("beanstalk", "server")
	}
	return args, nil
}

// Enforce makes the first token of a cluster whose nodes are ready, and lets nobody in without
// one from then on. It is in Access then, and calls of the Cluster carry it.
func (c *Cluster) Enforce(ctx context.Context) error {
	n := c.Nodes()[0]
	if err := os.MkdirAll(c.keys(), 0o700); err != nil {
		return fmt.Errorf("make a directory for keys: %w", err)
	}
	file := filepath.Join(c.keys(), "root.token")
	call := []string{"--addr", n.HTTP, "--patience", "60s"}
	if c.options.SecureClients {
		call = []string{"--addr", "https://" + n.HTTP, "--patience", "60s", "--tls-ca", c.authority()}
	}
	if err := c.tarry(ctx, append([]string{"auth", "bootstrap", "--data-dir", n.DataDir(), "-o", file}, call...)...); err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the first token: %w", err)
	}
	if err := c.tarry(ctx, append([]string{"auth", "mode", "enforce", "--token-file", file}, call...)...); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.access.Token = strings.TrimSpace(string(text))
	return nil
}
