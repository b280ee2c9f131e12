package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"
)

// Clients is the name, in a Rule, of the machine itself, where clients run.
const Clients = "clients"

// maxNodes is half the number of nodes' addresses, so that all can change at once.
const maxNodes = 60

// The last bytes of addresses.
const (
	clientsHost   = 1   // the machine itself
	firstNodeHost = 2   // the nodes, as clients see them
	strangerHost  = 126 // the machine itself, as another client
	firstPeerHost = 129 // the nodes, as nodes see them
	lastPeerHost  = 254
)

// teardown bounds the removal of a network or of a rule, which also happens when
// the caller's context has ended.
const teardown = 30 * time.Second

// Network is the network between some nodes. Its methods may be called from several
// goroutines.
type Network struct {
	slot  *slot
	names names

	mu       sync.Mutex
	closed   bool
	ids      []string
	peerHost map[string]int // last byte of each node's address among nodes
	nextHost int
	effects  []*effect
	queues   uint16 // queue numbers used; they repeat after 65,536 faults
}

var nodeID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,30}$`)

// New builds a network with the nodes, to which Add adds others. It first removes the
// leftovers of killed runs. It blocks for a fraction of a second, until the network works.
// The network must be closed.
func New(ctx context.Context, ids ...string) (*Network, error) {
	s, err := takeSlot(ctx)
	if err != nil {
		return nil, err
	}
	n := &Network{slot: s, peerHost: map[string]int{}, nextHost: firstPeerHost}
	err = n.build(ctx)
	for _, id := range ids {
		if err == nil {
			err = n.Add(ctx, id)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("build the network: %w", err), n.Close())
	}
	return n, nil
}

// hub names the namespace of the bridge.
const hub = "hub"

func (n *Network) build(ctx context.Context) error {
	hubNamespace := n.slot.namespace(hub)
	err := ip(ctx, "", "netns add "+hubNamespace,
		fmt.Sprintf("link add %s type veth peer name clients netns %s", n.slot.device(), hubNamespace),
		fmt.Sprintf("addr add %s/25 dev %s", n.slot.address(clientsHost), n.slot.device()),
		fmt.Sprintf("addr add %s/25 dev %s", n.slot.address(strangerHost), n.slot.device()),
		fmt.Sprintf("link set %s up", n.slot.device()))
	if err != nil {
		return err
	}
	return ip(ctx, hubNamespace, "link add bridge type bridge", "link set bridge up", "link set clients master bridge up")
}

// Add adds one more node. An id is also a host name: at most 31 lower case letters, digits
// and hyphens. Rules in force do not apply to the node.
func (n *Network) Add(ctx context.Context, id string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
		return errClosed
	case !nodeID.MatchString(id) || id == Clients || id == hub || slices.Contains(n.ids, id):
		return fmt.Errorf("%q cannot name a node of the network", id)
	case len(n.ids) == maxNodes:
		return fmt.Errorf("the network has %d nodes already", maxNodes)
	}
	n.ids = append(n.ids, id)
	n.peerHost[id] = n.drawPeerHost()
	port := fmt.Sprintf("port%d", len(n.ids))
	ns := n.slot.namespace(id)
	err := errors.Join(
		ip(ctx, "", "netns add "+ns),
		ip(ctx, n.slot.namespace(hub),
			fmt.Sprintf("link add %s type veth peer name eth0 netns %s", port, ns),
			fmt.Sprintf("link set %s master bridge up", port)),
		ip(ctx, ns, "link set lo up",
			fmt.Sprintf("addr add %s/25 dev eth0", n.host(id)),
			fmt.Sprintf("addr add %s/25 dev eth0", n.peerAddr(id)),
			"link set eth0 up"),
		setResolver(ns))
	if err == nil {
		n.tellNames()
		var c net.PacketConn
		if c, err = listenForNames(ns); err == nil {
			n.names.serve(c)
		}
	}
	if err != nil {
		return fmt.Errorf("add node %s: %w", id, err)
	}
	return nil
}

var errClosed = errors.New("the network is closed")

// Close heals and removes everything. Processes in the namespaces must have ended.
func (n *Network) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), teardown)
	defer cancel()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	n.closed = true
	var errs []error
	for _, e := range n.effects {
		errs = append(errs, e.stop())
	}
	n.effects = nil
	return errors.Join(append(errs, n.names.close(), n.slot.release(ctx))...)
}

// Nodes returns the ids of all nodes, in the order in which they were added.
func (n *Network) Nodes() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.ids)
}

// Prefix returns the command that runs a program on the node; it execs. There every node's
// id resolves to its present address.
func (n *Network) Prefix(id string) []string {
	return []string{"ip", "netns", "exec", n.slot.namespace(id)}
}

// Host returns the address at which clients reach the node; empty: the node is unknown. It
// never changes.
func (n *Network) Host(id string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.host(id)
}

func (n *Network) host(id string) string {
	i := slices.Index(n.ids, id)
	if i < 0 {
		return ""
	}
	return n.slot.address(firstNodeHost + i).String()
}

// ClientsHost returns the address at which nodes reach the machine itself.
func (n *Network) ClientsHost() string { return n.slot.address(clientsHost).String() }

// StrangerHost returns another address of the machine itself, for an attacker.
func (n *Network) StrangerHost() string { return n.slot.address(strangerHost).String() }

// PeerHost returns the present address at which other nodes reach the node.
func (n *Network) PeerHost(id string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.peerAddr(id).String()
}

// peerAddr is called with n.mu held, or before the network is shared.
func (n *Network) peerAddr(id string) netip.Addr { return n.slot.address(n.peerHost[id]) }

// drawPeerHost returns the nodes' address that has been unused for longest.
func (n *Network) drawPeerHost() int {
	for {
		host := n.nextHost
		if n.nextHost++; n.nextHost > lastPeerHost {
			n.nextHost = firstPeerHost
		}
		used := false
		for _, other := range n.peerHost {
			used = used || other == host
		}
		if !used {
			return host
		}
	}
}

// Move selects the new addresses of nodes.
type Move int

const (
	// Fresh gives every node an unused address.
	Fresh Move = iota
	// Rotate gives every node the address of the next one, so that packets to a node's old
	// address reach another node.
	Rotate
)

// Readdress changes the addresses of all nodes at once, and what their names resolve to.
// Connections to the old addresses get no replies: these are unused, or another node's.
func (n *Network) Readdress(ctx context.Context, m Move) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || len(n.ids) == 0 {
		return errClosed
	}
	old := map[string]netip.Addr{}
	for _, id := range n.ids {
		old[id] = n.peerAddr(id)
	}
	if m == Rotate {
		first := n.peerHost[n.ids[0]]
		for i, id := range n.ids[:len(n.ids)-1] {
			n.peerHost[id] = n.peerHost[n.ids[i+1]]
		}
		n.peerHost[n.ids[len(n.ids)-1]] = first
	} else {
		for _, id := range n.ids {
			n.peerHost[id] = n.drawPeerHost()
		}
	}
	for _, id := range n.ids {
		err := ip(ctx, n.slot.namespace(id), fmt.Sprintf("addr del %s/25 dev eth0", old[id]))
		if err != nil {
			return fmt.Errorf("remove the address of node %s: %w", id, err)
		}
	}
	n.tellNames()
	for _, id := range n.ids {
		// A platform announces changed addresses. Here the neighbour caches are cleared.
		err := ip(ctx, n.slot.namespace(id), fmt.Sprintf("addr add %s/25 dev eth0", n.peerAddr(id)), "neigh flush all")
		if err != nil {
			return fmt.Errorf("give node %s a new address: %w", id, err)
		}
	}
	return n.install(ctx, n.ids)
}

// Inherit removes a node's address and gives it to another node, which keeps its own too,
// like a platform that reuses addresses. The name of the first still resolves to that
// address, so it leads to the second until back is called.
func (n *Network) Inherit(ctx context.Context, from, to string) (back func() error, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || from == to || !slices.Contains(n.ids, from) || !slices.Contains(n.ids, to) {
		return nil, fmt.Errorf("cannot give node %s the address of node %s", to, from)
	}
	if err := n.hand(ctx, from, to, from); err != nil {
		return nil, err
	}
	return func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.closed {
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), teardown)
		defer cancel()
		return n.hand(ctx, to, from, from)
	}, nil
}

// hand moves an address from a node to another. It is called with n.mu held.
func (n *Network) hand(ctx context.Context, from, to, owner string) error {
	addr := n.peerAddr(owner)
	err := ip(ctx, n.slot.namespace(from), fmt.Sprintf("addr del %s/25 dev eth0", addr))
	if err == nil {
		err = ip(ctx, n.slot.namespace(to), fmt.Sprintf("addr add %s/25 dev eth0", addr))
	}
	for _, id := range n.ids {
		if err == nil {
			err = ip(ctx, n.slot.namespace(id), "neigh flush all")
		}
	}
	if err != nil {
		return fmt.Errorf("move the address of node %s from %s to %s: %w", owner, from, to, err)
	}
	return nil
}

// tellNames sets the nodes' present addresses in every namespace.
func (n *Network) tellNames() {
	known := map[string]netip.Addr{}
	for _, id := range n.ids {
		known[id] = n.peerAddr(id)
	}
	n.names.set(known)
}

// setResolver makes programs in a namespace use our DNS server.
func setResolver(namespace string) error {
	dir := filepath.Join(resolverDir, namespace)
	return errors.Join(
		os.MkdirAll(dir, 0o755),
		os.WriteFile(filepath.Join(dir, "hosts"), []byte("127.0.0.1 localhost\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "resolv.conf"), []byte(resolverConfig), 0o644))
}
