package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Clients names, in a Rule, the machine's own side, where clients run.
const Clients = "clients"

// maxNodes leaves room for new addresses in the nodes' half of the /24.
const maxNodes = 24

// The last bytes of addresses.
const (
	clientsHost   = 1   // the machine itself
	firstNodeHost = 2   // the nodes, as clients see them
	firstPeerHost = 129 // the nodes, as nodes see them
	lastPeerHost  = 254
)

// teardown bounds the removal of a network or of a rule, which also happens when
// the caller's context has ended.
const teardown = 30 * time.Second

// Network is the lines between some nodes. Its methods may be called from
// several goroutines.
type Network struct {
	slot *slot
	ids  []string

	mu       sync.Mutex
	closed   bool
	peerHost map[string]int // last byte of each node's address among nodes
	nextHost int
	effects  []*effect
	queues   uint16 // numbers given out; they come round after 65,536 faults
}

var nodeID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,30}$`)

// New builds the network. Its nodes are named now and for good; ids are lower
// case letters, digits and hyphens, at most 31, as they are host names. It
// blocks until the lines are up, a fraction of a second, and first removes what
// runs that died have left behind. The owner calls Close.
func New(ctx context.Context, ids []string) (*Network, error) {
	if len(ids) == 0 || len(ids) > maxNodes {
		return nil, fmt.Errorf("a network has 1 to %d nodes, not %d", maxNodes, len(ids))
	}
	for i, id := range ids {
		if !nodeID.MatchString(id) || id == Clients || id == hub || slices.Contains(ids[:i], id) {
			return nil, fmt.Errorf("%q cannot name a node of a network", id)
		}
	}
	s, err := takeSlot(ctx)
	if err != nil {
		return nil, err
	}
	n := &Network{slot: s, ids: slices.Clone(ids), peerHost: map[string]int{}, nextHost: firstPeerHost}
	n.drawPeerHosts()
	if err := n.build(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("build the network: %w", err), n.Close())
	}
	return n, nil
}

// hub names the namespace of the bridge.
const hub = "hub"

func (n *Network) build(ctx context.Context) error {
	hubNamespace := n.slot.namespace(hub)
	lines := []string{"netns add " + hubNamespace}
	for _, id := range n.ids {
		lines = append(lines, "netns add "+n.slot.namespace(id))
	}
	lines = append(lines,
		fmt.Sprintf("link add %s type veth peer name clients netns %s", n.slot.device(), hubNamespace),
		fmt.Sprintf("addr add %s/25 dev %s", n.slot.address(clientsHost), n.slot.device()),
		fmt.Sprintf("link set %s up", n.slot.device()))
	if err := ip(ctx, "", lines...); err != nil {
		return err
	}
	lines = []string{"link add bridge type bridge", "link set bridge up", "link set clients master bridge up"}
	for i, id := range n.ids {
		lines = append(lines,
			fmt.Sprintf("link add port%d type veth peer name eth0 netns %s", i, n.slot.namespace(id)),
			fmt.Sprintf("link set port%d master bridge up", i))
	}
	if err := ip(ctx, hubNamespace, lines...); err != nil {
		return err
	}
	for _, id := range n.ids {
		err := ip(ctx, n.slot.namespace(id), "link set lo up",
			fmt.Sprintf("addr add %s/25 dev eth0", n.Host(id)),
			fmt.Sprintf("addr add %s/25 dev eth0", n.peerAddr(id)),
			"link set eth0 up")
		if err != nil {
			return err
		}
	}
	return n.writeNames()
}

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
	return errors.Join(append(errs, n.slot.release(ctx))...)
}

// Nodes are the ids given to New.
func (n *Network) Nodes() []string { return slices.Clone(n.ids) }

// Prefix is the command that runs a program on the node; it execs. Inside, every
// node's id resolves to its address of the moment.
func (n *Network) Prefix(id string) []string {
	return []string{"ip", "netns", "exec", n.slot.namespace(id)}
}

// Host is the address by which clients reach the node, "" for an unknown one. It
// never changes.
func (n *Network) Host(id string) string {
	i := slices.Index(n.ids, id)
	if i < 0 {
		return ""
	}
	return n.slot.address(firstNodeHost + i).String()
}

// PeerHost is the address by which other nodes reach the node at present.
func (n *Network) PeerHost(id string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.peerAddr(id).String()
}

// peerAddr needs n.mu, or a network that nobody else knows yet.
func (n *Network) peerAddr(id string) netip.Addr { return n.slot.address(n.peerHost[id]) }

// drawPeerHosts gives every node an address among nodes that none has now.
func (n *Network) drawPeerHosts() {
	for _, id := range n.ids {
		n.peerHost[id] = n.nextHost
		if n.nextHost++; n.nextHost > lastPeerHost {
			n.nextHost = firstPeerHost
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
		n.drawPeerHosts()
	}
	for _, id := range n.ids {
		err := ip(ctx, n.slot.namespace(id), fmt.Sprintf("addr del %s/25 dev eth0", old[id]))
		if err != nil {
			return fmt.Errorf("take node %s its address: %w", id, err)
		}
	}
	if err := n.writeNames(); err != nil {
		return err
	}
	for _, id := range n.ids {
		// A platform announces moved addresses; here everybody forgets.
		err := ip(ctx, n.slot.namespace(id), fmt.Sprintf("addr add %s/25 dev eth0", n.peerAddr(id)), "neigh flush all")
		if err != nil {
			return fmt.Errorf("give node %s a new address: %w", id, err)
		}
	}
	return n.install(ctx, n.ids)
}

// writeNames tells every namespace what the nodes' names mean. A running process
// sees the file through a mount, so it is written in place and never replaced.
func (n *Network) writeNames() error {
	var hosts strings.Builder
	hosts.WriteString("127.0.0.1 localhost\n")
	for _, id := range n.ids {
		fmt.Fprintf(&hosts, "%s %s\n", n.peerAddr(id), id)
	}
	for _, id := range n.ids {
		dir := filepath.Join(resolverDir, n.slot.namespace(id))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("write the nodes' names: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, "hosts"), []byte(hosts.String()), 0o644); err != nil {
			return fmt.Errorf("write the nodes' names: %w", err)
		}
	}
	return nil
}
