package localcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tarry/internal/freeport"
)

// Options say what to run.
type Options struct {
	Binary string   // the tarry binary
	Dir    string   // an existing directory for data and logs; its owner removes it
	Nodes  int      // nodes of the first start, n1, n2, ...
	Args   []string // further arguments of every node
	Env    []string // further environment of every node, KEY=VALUE
	// SecureNodes lets only nodes that prove who they are talk to each other, over TLS and encrypted
	// gossip, SecureClients clients only over TLS. Tokens: see Enforce.
	SecureNodes, SecureClients bool

	// What follows places nodes elsewhere than on 127.0.0.1 with everything
	// below Dir. Each may be nil and is asked once for a node, by its id.
	Prepare func(id string) error  // makes the place; it comes before the others
	Host    func(id string) string // where it listens and, without Name, what it advertises
	Name    func(id string) string // what other nodes know it by; for them it listens on all addresses
	DataDir func(id string) string // where it keeps its state
	// SamePorts gives all nodes the same four ports, as where each has an address of
	// its own.
	SamePorts bool
	Prefix    func(id string) []string // a command that runs the binary, as `ip netns exec NAME`; it must exec
}

// loopback is where nodes live unless Options.Host says otherwise.
const loopback = "127.0.0.1"

// Cluster is a set of nodes that know each other's gossip addresses.
type Cluster struct {
	options Options
	client  *http.Client // of calls to the nodes

	mu        sync.Mutex
	access    Access
	signing   sync.Mutex // held while certificates are made, or their authority changes
	ports     []int      // of all nodes, with SamePorts
	nodes     []*Node
	forgotten []*Node
}

// New gives every node its ports and directory and starts nothing.
func New(o Options) (*Cluster, error) {
	c := &Cluster{options: o, client: operators}
	if o.SecureNodes || o.SecureClients {
		if err := c.makeAuthority(); err != nil {
			return nil, err
		}
	}
	for i := range o.Nodes {
		n, err := c.place("n" + strconv.Itoa(i+1))
		if err != nil {
			return nil, err
		}
		c.nodes = append(c.nodes, n)
	}
	for _, n := range c.nodes {
		n.args = c.commandLine(n, o.Nodes > 1, o.Nodes)
	}
	return c, nil
}

// place makes a node with its own ports and directory.
func (c *Cluster) place(id string) (*Node, error) {
	n := &Node{ID: id, binary: c.options.Binary, common: c.options.Env, dir: filepath.Join(c.options.Dir, id), host: loopback}
	n.dataDir = filepath.Join(n.dir, "data")
	if c.options.Prepare != nil {
		if err := c.options.Prepare(id); err != nil {
			return nil, fmt.Errorf("make a place for node %s: %w", id, err)
		}
	}
	if c.options.Host != nil {
		n.host = c.options.Host(id)
	}
	n.name = n.host
	if c.options.Name != nil {
		n.name = c.options.Name(id)
	}
	if c.options.DataDir != nil {
		n.dataDir = c.options.DataDir(id)
	}
	if c.options.Prefix != nil {
		n.prefix = c.options.Prefix(id)
	}
	ports, err := c.takePorts()
	if err != nil {
		return nil, err
	}
	for i, a := range []struct {
		addr *string
		host string
	}{{&n.HTTP, n.host}, {&n.Beanstalk, n.host}, {&n.Cluster, n.name}, {&n.Gossip, n.name}} {
		*a.addr = net.JoinHostPort(a.host, strconv.Itoa(ports[i]))
	}
	if c.options.SecureNodes || c.options.SecureClients {
		if n.secured, err = c.secure(n); err != nil {
			return nil, fmt.Errorf("make the keys of node %s: %w", id, err)
		}
	}
	return n, nil
}

// portsOfNode is how many ports a node has.
const portsOfNode = 4

// takePorts finds the ports of one more node.
func (c *Cluster) takePorts() ([]int, error) {
	if c.ports != nil {
		return c.ports, nil
	}
	var ports []int
	for range portsOfNode {
		p, err := freeport.Take()
		if err != nil {
			return nil, err
		}
		ports = append(ports, p)
	}
	if c.options.SamePorts {
		c.ports = ports
	}
	return ports, nil
}

func (c *Cluster) commandLine(n *Node, join bool, expect int) []string {
	args := []string{"server", "--node-id", n.ID, "--data-dir", n.DataDir(),
		"--http-addr", n.HTTP, "--beanstalk-addr", n.Beanstalk,
		"--cluster-addr", n.listen(n.Cluster), "--gossip-addr", n.listen(n.Gossip), "--advertise-host", n.name}
	if join {
		var seeds []string
		for _, other := range c.nodes {
			seeds = append(seeds, other.Gossip)
		}
		args = append(args, "--join", strings.Join(seeds, ","))
	}
	if expect > 0 {
		args = append(args, "--bootstrap-expect", strconv.Itoa(expect))
	}
	return slices.Concat(args, n.secured, c.options.Args)
}

// listen is where a node listens that other nodes reach at addr.
func (n *Node) listen(addr string) string {
	if n.name == n.host {
		return addr
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		panic(err) // place put it together
	}
	return net.JoinHostPort("0.0.0.0", port)
}

// Add makes one more node, which only ever joins, and does not start it. A node
// that was forgotten comes back to its place, with the files it left there.
func (c *Cluster) Add(id string) (*Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.forgotten, func(n *Node) bool { return n.ID == id }); i >= 0 {
		n := c.forgotten[i]
		if c.options.SecureNodes {
			if _, err := c.secure(n); err != nil { // what it left there may be of another authority
				return nil, fmt.Errorf("make the keys of node %s: %w", id, err)
			}
		}
		c.forgotten = slices.Delete(c.forgotten, i, i+1)
		c.nodes = append(slices.Clip(c.nodes), n)
		return n, nil
	}
	n, err := c.place(id)
	if err != nil {
		return nil, err
	}
	n.args = c.commandLine(n, true, 0)
	c.nodes = append(c.nodes, n)
	return n, nil
}

// Forget takes a node that is not running out of the cluster's list, as after its
// removal as a member. Its files stay.
func (c *Cluster) Forget(n *Node) error {
	if n.Running() {
		return fmt.Errorf("node %s is running; a forgotten process would never be stopped", n.ID)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes = slices.DeleteFunc(slices.Clone(c.nodes), func(other *Node) bool { return other == n })
	c.forgotten = append(c.forgotten, n)
	return nil
}

// Nodes are all nodes, running or not.
func (c *Cluster) Nodes() []*Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*Node(nil), c.nodes...)
}

// Start starts every node.
func (c *Cluster) Start() error {
	for _, n := range c.Nodes() {
		if err := n.Start(); err != nil {
			return err
		}
	}
	return nil
}

// Stop kills every process and waits for it.
func (c *Cluster) Stop() error {
	var errs []error
	for _, n := range c.Nodes() {
		if n.Running() {
			errs = append(errs, n.Kill())
		}
	}
	return errors.Join(errs...)
}

// poll is how often a condition is looked at again.
const poll = 20 * time.Millisecond

// Until calls f until it returns nil. When ctx ends first, it fails with the
// last error of f.
func Until(ctx context.Context, f func() error) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("gave up waiting: %w", err)
		case <-ticker.C:
		}
	}
}

// WaitReady waits until /readyz of every given node answers 200.
func (c *Cluster) WaitReady(ctx context.Context, nodes ...*Node) error {
	for _, n := range nodes {
		err := Until(ctx, func() error {
			if !n.Running() {
				return fmt.Errorf("node %s is not running; its log is %s", n.ID, n.LogPath())
			}
			return c.Get(ctx, n, "/readyz", nil)
		})
		if err != nil {
			return fmt.Errorf("node %s is not ready: %w", n.ID, err)
		}
	}
	return nil
}

// Member is a node as the cluster reports it.
type Member struct {
	ID           string `json:"id"`
	HTTPAddress  string `json:"http_address"`
	Role         string `json:"role"`
	Voter        bool   `json:"voter"`
	Alive        bool   `json:"alive"`
	AppliedIndex uint64 `json:"applied_index"`
	Lag          uint64 `json:"lag"`

	ClusterVersion uint32 `json:"cluster_version"` // as the node's state has it; 0 while it does not answer
	MaxVersion     uint32 `json:"max_cluster_version"`
}

// Members asks node n who is in the cluster.
func (c *Cluster) Members(ctx context.Context, n *Node) ([]Member, error) {
	var answer struct{ Members []Member }
	err := c.Get(ctx, n, "/v1/cluster/members", &answer)
	return answer.Members, err
}

// Leader asks the running nodes who leads, until one of them knows a leader that
// is running, or ctx ends.
func (c *Cluster) Leader(ctx context.Context) (*Node, error) {
	var leader *Node
	err := Until(ctx, func() error {
		var err error
		leader, err = c.askLeader(ctx)
		return err
	})
	return leader, err
}

func (c *Cluster) askLeader(ctx context.Context) (*Node, error) {
	nodes := c.Nodes()
	failure := errors.New("no node is running")
	for _, n := range nodes {
		if !n.Running() {
			continue
		}
		members, err := c.Members(ctx, n)
		if err != nil {
			failure = fmt.Errorf("ask node %s: %w", n.ID, err)
			continue
		}
		for _, m := range members {
			if m.Role != "leader" {
				continue
			}
			for _, candidate := range nodes {
				if candidate.ID == m.ID && candidate.Running() {
					return candidate, nil
				}
			}
		}
		failure = fmt.Errorf("node %s names no leader that is running", n.ID)
	}
	return nil, failure
}

// Get reads a JSON answer of node n; out may be nil.
func (c *Cluster) Get(ctx context.Context, n *Node, path string, out any) error {
	return c.Call(ctx, http.MethodGet, n, path, out)
}

// Call makes a request without a body to node n; out may be nil.
func (c *Cluster) Call(ctx context.Context, method string, n *Node, path string, out any) error {
	return c.send(ctx, method, n, path, http.NoBody, out)
}

// Post sends JSON to node n and decodes its answer into out, which may be nil.
func (c *Cluster) Post(ctx context.Context, n *Node, path string, in, out any) error {
	return c.sendJSON(ctx, http.MethodPost, n, path, in, out)
}

// Put is Post with that method.
func (c *Cluster) Put(ctx context.Context, n *Node, path string, in, out any) error {
	return c.sendJSON(ctx, http.MethodPut, n, path, in, out)
}

func (c *Cluster) sendJSON(ctx context.Context, method string, n *Node, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("node %s: %w", n.ID, err)
	}
	return c.send(ctx, method, n, path, bytes.NewReader(body), out)
}

func (c *Cluster) send(ctx context.Context, method string, n *Node, path string, body io.Reader, out any) error {
	access := c.Access()
	scheme := "http://"
	if access.TLS != nil {
		scheme = "https://"
	}
	if err := send(ctx, c.client, access.Token, method, scheme+n.HTTP+path, body, out); err != nil {
		return fmt.Errorf("node %s: %w", n.ID, err)
	}
	return nil
}

// operators makes a connection a request: nodes come and go, and a kept one may
// lead to a process that is no more.
var operators = &http.Client{Transport: Authorized(&http.Transport{DisableKeepAlives: true})}

const (
	maxAnswer   = 1 << 20 // bytes read of an answer
	callTimeout = 5 * time.Second
)

// Call makes a request without a body to the node at addr, without TLS, and decodes its JSON
// answer into out, which may be nil. It takes five seconds at most.
func Call(ctx context.Context, method, addr, path string, out any) error {
	return send(ctx, operators, "", method, "http://"+addr+path, http.NoBody, out)
}

func send(ctx context.Context, client *http.Client, token, method, url string, body io.Reader, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err
	}
	if body != http.NoBody {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %.300s", method, req.URL.Path, resp.Status, data)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}
