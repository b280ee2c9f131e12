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

// Clients names, in a Rule, the machine's own side, where clients run.
const Clients = "clients"

// maxNodes is half of the addresses among nodes, so that all can change at once.
const maxNodes = 60

// The last bytes of addresses.
const (
	clientsHost   = 1   // the machine itself
	firstNodeHost = 2   // the nodes, as clients see them
	strangerHost  = 126 // the machine itself, as somebody else
	firstPeerHost = 129 // the nodes, as nodes see them
	lastPeerHost  = 254
)

// teardown bounds the removal of a network or of a rule, which also happens when
// the caller's context has ended.
const teardown = 30 * time.Second

// Network is the lines between some nodes. Its methods may be called from
// several goroutines.
type Network struct {
	slot  *slot
	names names

	mu       sync.Mutex
	closed   bool
	ids      []string
	peerHost map[string]int // last byte of each node's address among nodes
	nextHost int
	effects  []*effect
	queues   uint16 // numbers given out; they come round after 65,536 faults
}

var nodeID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,30}$`)

// New builds a network with the nodes, to which Add adds others. It blocks until
// the lines are up, a fraction of a second, and first removes what runs that
// died have left behind. The owner calls Close.
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

// Add makes a place for one more node. An id is also a host name: lower case
// letters, digits and hyphens, at most 31. Rules in force do not hold for it.
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
		return fmt.Errorf("make a place for node %s: %w", id, err)
	}
	return nil
}

var errClosed = errors.New("the network is closed")

// Close heals and removes everything. Processes inside must have ended.
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

// Nodes are the ids of all nodes, in the order they were added.
func (n *Network) Nodes() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.ids)
}

// Prefix is the command that runs a program on the node; it execs. Inside, every
// node's id resolves to its address of the moment.
func (n *Network) Prefix(id string) []string {
	return []string{"ip", "netns", "exec", n.slot.namespace(id)}
}

// Host is the address by which clients reach the node, "" for an unknown one. It
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

// ClientsHost is the address by which nodes reach the machine itself.
func (n *Network) ClientsHost() string { return n.slot.address(clientsHost).String() }

// StrangerHost is another address of the machine itself, for somebody who is neither
// a node nor a client.
func (n *Network) StrangerHost() string { return n.slot.address(strangerHost).String() }

// PeerHost is the address by which other nodes reach the node at present.
func (n *Network) PeerHost(id string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.peerAddr(id).String()
}

// peerAddr needs n.mu, or a network that nobody else knows yet.
func (n *Network) peerAddr(id string) netip.Addr { return n.slot.address(n.peerHost[id]) }

// drawPeerHost gives an address among nodes that none has. It is the one that
// was nobody's for longest.
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

// Move says which addresses nodes get.
type Move int

const (
	// Fresh addresses were nobody's.
	Fresh Move = iota
	// Rotate gives every node the address that the next one had, so that what
	// was sent to the old address of a node reaches another.
	Rotate
)

// Readdress gives all nodes other addresses among themselves at once, and tells
// their names. Connections over the old ones fall silent: nobody has those
// addresses any more, or another node has.
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
			return fmt.Errorf("take node %s its address: %w", id, err)
		}
	}
	n.tellNames()
	for _, id := range n.ids {
		// A platform announces moved addresses; here everybody forgets.
		err := ip(ctx, n.slot.namespace(id), fmt.Sprintf("addr add %s/25 dev eth0", n.peerAddr(id)), "neigh flush all")
		if err != nil {
			return fmt.Errorf("give node %s a new address: %w", id, err)
		}
	}
	return n.install(ctx, n.ids)
}

// Inherit takes a node its address among nodes and gives it to another one, which
// keeps its own, as a platform does that uses addresses again. The name of the first
// stays what it was, so it leads to the second until back.
func (n *Network) Inherit(ctx context.Context, from, to string) (back func() error, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || from == to || !slices.Contains(n.ids, from) || !slices.Contains(n.ids, to) {
		return nil, fmt.Errorf("node %s cannot get the address of node %s", to, from)
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

// hand moves the address that belongs to a node; it needs n.mu.
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
		return fmt.Errorf("hand the address of node %s from %s to %s: %w", owner, from, to, err)
	}
	return nil
}

// tellNames tells every namespace what the nodes' names mean.
func (n *Network) tellNames() {
	known := map[string]netip.Addr{}
	for _, id := range n.ids {
		known[id] = n.peerAddr(id)
	}
	n.names.set(known)
}

// setResolver makes programs in a namespace ask our name service.
func setResolver(namespace string) error {
	dir := filepath.Join(resolverDir, namespace)
	return errors.Join(
		os.MkdirAll(dir, 0o755),
		os.WriteFile(filepath.Join(dir, "hosts"), []byte("127.0.0.1 localhost\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "resolv.conf"), []byte(resolverConfig), 0o644))
}
