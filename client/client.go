package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// Client makes calls to a cluster. It may be used by many goroutines at once.
type Client struct {
	http     *http.Client
	tls      *tls.Config
	nodes    *nodes
	timeout  time.Duration
	patience time.Duration
	retrying func(err error, left time.Duration)
	token    *tokenFile // nil: none is sent
	// tokenOverHTTP is set if the token may be sent without TLS to other machines.
	tokenOverHTTP bool
}

// Option configures a Client.
type Option func(*Client)

// WithHTTPClient replaces the HTTP client, and with it the connection pool. Its
// own Timeout must leave room for the longest wait of a reserve.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithTLS configures the connections to https addresses: RootCAs are the authorities of the
// nodes' certificates, Certificates the client's own. It cannot be used with WithHTTPClient.
func WithTLS(t *tls.Config) Option { return func(c *Client) { c.tls = t } }

// WithTimeout bounds one attempt at one node. The wait of a reserve is added to it. The
// default is 10 s.
func WithTimeout(d time.Duration) Option { return func(c *Client) { c.timeout = d } }

// WithPatience sets for how long a call is retried after its first attempt. The wait of a
// reserve is added to it. The context of the call can end it earlier. The default is 30 s; 0
// means one attempt per node.
func WithPatience(d time.Duration) Option { return func(c *Client) { c.patience = d } }

// WithRetrying sets a function that is called before the first retry of a call, with the
// reason and the time for which the call will be retried. f must not block.
func WithRetrying(f func(err error, left time.Duration)) Option {
	return func(c *Client) { c.retrying = f }
}

// New returns a client of the nodes at addrs: host:port, or a URL with http or https; a text may
// have several, separated by commas. It does not connect. The first call starts at a random node; later ones start at the leader,
// which responses name. Before its second call the client asks the cluster for its members,
// so one address is enough while that node is up.
func New(addrs []string, options ...Option) (*Client, error) {
	c := &Client{timeout: 10 * time.Second, patience: 30 * time.Second, retrying: func(error, time.Duration) {}}
	var given []string
	for _, text := range addrs {
		for a := range strings.SplitSeq(text, ",") {
			url, err := baseURL(strings.TrimSpace(a))
			if err != nil {
				return nil, err
			}
			given = append(given, url)
		}
	}
	if len(given) == 0 {
		return nil, fmt.Errorf("give at least one address of a node")
	}
	c.nodes = newNodes(given)
	for _, o := range options {
		o(c)
	}
	if err := c.checkAddresses(); err != nil {
		return nil, err
	}
	c.nodes.usable = c.mayHaveToken
	if c.http != nil && c.tls != nil {
		return nil, errors.New("give WithTLS or WithHTTPClient, not both")
	}
	if c.http == nil {
		c.http = &http.Client{Transport: newTransport(c.tls)}
	}
	// A redirect would make another call of it, a GET whose success would be taken for this
	// one's, or carry its body elsewhere.
	own := *c.http
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &own
	return c, nil
}

// Close closes the idle connections. It does not interrupt calls.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func baseURL(addr string) (string, error) {
	scheme, host, found := strings.Cut(addr, "://")
	if !found {
		scheme, host = "http", addr
	}
	host = strings.TrimSuffix(host, "/")
	name, port, err := net.SplitHostPort(host)
	if err != nil || name == "" || port == "" || strings.ContainsAny(host, "/?# ") {
		return "", fmt.Errorf("address %q: must be host:port", addr)
	}
	if scheme != "http" && scheme != "https" {
		return "", fmt.Errorf("address %q: scheme must be http or https, got %q", addr, scheme)
	}
	return scheme + "://" + host, nil
}

// newTransport keeps as many connections open as there are concurrent calls, up to a limit.
// Each waiting reserve uses one.
func newTransport(t *tls.Config) *http.Transport {
	dialer := &net.Dialer{Timeout: 3 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Transport{
		DialContext:         dialer.DialContext,
		TLSClientConfig:     t,
		MaxIdleConnsPerHost: 1024,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
	}
}

// The calls that are not about jobs, by what they are about. A value of these types is small, and
// as usable by many goroutines as the Client is.
type (
	// Topics are the calls on topics and their settings, and on many jobs of a topic.
	Topics struct{ client *Client }
	// Schedules are the calls on recurring jobs.
	Schedules struct{ client *Client }
	// Cluster are an operator's calls on the cluster.
	Cluster struct{ client *Client }
	// Node are the calls on one node: the client should have the address of only that node.
	Node struct{ client *Client }
	// Keys are the calls on the keys of gossip, and of the secrets of push targets.
	Keys struct{ client *Client }
	// Backups are the calls that make and use copies of a cluster.
	Backups struct{ client *Client }
	// Tokens are the calls on tokens, and on whether they are needed.
	Tokens struct{ client *Client }
	// Namespaces are the calls on namespaces.
	Namespaces struct{ client *Client }
)

// Topics returns the calls on topics.
func (c *Client) Topics() Topics { return Topics{c} }

// Schedules returns the calls on schedules.
func (c *Client) Schedules() Schedules { return Schedules{c} }

// Cluster returns the calls on the cluster.
func (c *Client) Cluster() Cluster { return Cluster{c} }

// Node returns the calls on one node.
func (c *Client) Node() Node { return Node{c} }

// Keys returns the calls on keys.
func (c *Client) Keys() Keys { return Keys{c} }

// Backups returns the calls on backups.
func (c *Client) Backups() Backups { return Backups{c} }

// Tokens returns the calls on tokens.
func (c *Client) Tokens() Tokens { return Tokens{c} }

// Namespaces returns the calls on namespaces.
func (c *Client) Namespaces() Namespaces { return Namespaces{c} }
