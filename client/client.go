package client

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// Client talks to a cluster. It may be used by many goroutines at once.
type Client struct {
	http     *http.Client
	nodes    *nodes
	timeout  time.Duration
	patience time.Duration
	retrying func(err error, left time.Duration)
}

// Option changes a Client that New makes.
type Option func(*Client)

// WithHTTPClient replaces the HTTP client, and with it the connection pool. Its
// own Timeout must leave room for the longest wait of a reserve.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithTimeout bounds one attempt at one node, beyond the wait that a reserve
// asks for. The default is 10 s.
func WithTimeout(d time.Duration) Option { return func(c *Client) { c.timeout = d } }

// WithPatience sets for how long a call tries again, after its first attempt
// and beyond the wait that a reserve asks for. The context of the call can end
// it earlier. The default is 30 s; 0 means one round over the nodes.
func WithPatience(d time.Duration) Option { return func(c *Client) { c.patience = d } }

// WithRetrying has f called, once a call at most, when the call is about to be tried
// again after a node refused it or none answered: with the reason, and with the time
// for which it will be tried. f must not block.
func WithRetrying(f func(err error, left time.Duration)) Option {
	return func(c *Client) { c.retrying = f }
}

// New makes a client of the nodes at addrs: host:port, or a URL with http or
// https. It does not connect. The first call starts at a random node; later ones start
// at the leader, which replies name. Before its second call the client asks the cluster
// for its members, so one address is enough while that node is up.
func New(addrs []string, options ...Option) (*Client, error) {
	c := &Client{timeout: 10 * time.Second, patience: 30 * time.Second, retrying: func(error, time.Duration) {}}
	var given []string
	for _, a := range addrs {
		url, err := baseURL(a)
		if err != nil {
			return nil, err
		}
		given = append(given, url)
	}
	if len(given) == 0 {
		return nil, fmt.Errorf("no address of a node is given")
	}
	c.nodes = newNodes(given)
	for _, o := range options {
		o(c)
	}
	if c.http == nil {
		c.http = &http.Client{Transport: newTransport()}
	}
	return c, nil
}

// Close closes the idle connections. Calls under way are not disturbed.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func baseURL(addr string) (string, error) {
	scheme, host, found := strings.Cut(addr, "://")
	if !found {
		scheme, host = "http", addr
	}
	host = strings.TrimSuffix(host, "/")
	name, port, err := net.SplitHostPort(host)
	if err != nil || name == "" || port == "" || strings.ContainsAny(host, "/?# ") {
		return "", fmt.Errorf("address %q is not of the form host:port", addr)
	}
	if scheme != "http" && scheme != "https" {
		return "", fmt.Errorf("address %q has the scheme %q; it takes http or https", addr, scheme)
	}
	return scheme + "://" + host, nil
}

// newTransport keeps as many connections open as calls are made at once, up to
// a bound: each waiting reserve holds one.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 3 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Transport{
		DialContext:         dialer.DialContext,
		MaxIdleConnsPerHost: 1024,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
	}
}
