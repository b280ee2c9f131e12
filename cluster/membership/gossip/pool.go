package gossip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// joinTimeout bounds the exchange with one address, and so how long Close may
// have to wait for a Join under way.
const joinTimeout = 3 * time.Second

// updateTimeout bounds how long a change of our record, or our leave message, waits
// until one other node has received it; gossip spreads it further.
const updateTimeout = 2 * time.Second

// maxLive bounds the runs of nodes that are taken for alive, far above what a cluster
// has: anybody can make some up. As many again are let in if they answer; see newcomers.go.
const maxLive = 256

// maxKnown bounds the addresses remembered of nodes that are not alive.
const maxKnown = 256

// Options says how to take part. All fields but Encryption and Tune are needed.
type Options struct {
	Bind          string // host:port to listen on, TCP and UDP; port 0 takes a free one
	AdvertiseHost string // name or IP by which others reach this node
	Meta          func() Meta
	// Admit decides whether a node may be in the pool. It is called while
	// gossip holds its locks: it must be quick and must not call the Pool.
	Admit func(Meta) error
	// Changed is called after the set of live nodes or a record changed. It
	// must not block and must not call the Pool.
	Changed func()
	// Overruled is called when somebody has said of this node what it may soon not be able to object
	// to: the pool should be closed, and another one opened in a new epoch. It must not block and must
	// not call the Pool.
	Overruled func()
	Logger    *slog.Logger
	// Encryption may be the zero value: gossip is in plain text.
	Encryption Encryption
	// Tune may change memberlist's settings; nil keeps those for a LAN.
	Tune func(*memberlist.Config)
}

// Member is a live node of the pool.
type Member struct {
	Meta
	GossipAddr string // host:port by the name the node advertises
}

// Pool is the set of live nodes, by gossip, and this node's record in it.
type Pool struct {
	o    Options
	ip   net.IP // advertised; fixed for the life of the pool
	name string
	list *memberlist.Memberlist

	closed atomic.Bool
	// stop ends what done counts: the check of newcomers.
	stop context.CancelFunc
	done sync.WaitGroup

	mu        sync.Mutex
	live      map[string]Member // by gossip name
	newcomers newcomers
	known     map[string]string // gossip address by node id, of every node ever heard of
	// keysDiffer has the addresses of nodes with other keys, as logged.
	keysDiffer map[string]bool
}

// Open starts listening and gossiping. It resolves the advertised host, and
// waits for no other node.
func Open(ctx context.Context, o Options) (*Pool, error) {
	host, portText, err := net.SplitHostPort(o.Bind)
	if err != nil {
		return nil, fmt.Errorf("gossip address %q: %w", o.Bind, err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("gossip address %q: the port must be a number from 0 to 65535", o.Bind)
	}
	bind, err := resolveBind(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("gossip address %q: %w", o.Bind, err)
	}
	ip, err := ResolveHost(ctx, o.AdvertiseHost)
	if err != nil {
		return nil, fmt.Errorf("advertise host: %w", err)
	}
	meta := o.Meta()
	if err := meta.Check(); err != nil {
		return nil, err
	}
	p := &Pool{
		o: o, ip: ip,
		name: meta.ServerID + "@" + strconv.FormatUint(meta.Epoch, 10),
		live: make(map[string]Member), newcomers: newNewcomers(),
		known: make(map[string]string), keysDiffer: make(map[string]bool),
	}
	t, err := listen(bind, int(port), o.Logger, claims{p.name, o.Overruled})
	if err != nil {
		return nil, fmt.Errorf("start gossip on %s: %w", o.Bind, err)
	}
	p.list, err = memberlist.Create(p.config(t))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start gossip on %s: %w", o.Bind, err), t.Shutdown())
	}
	checking, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.done.Go(func() { p.checkNewcomers(checking) })
	return p, nil
}

func (p *Pool) config(t *transport) *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	// The start epoch in the name makes every run of a node a new one for
	// gossip, so a restart under a new address never conflicts with the last.
	c.Name = p.name
	c.Transport = t
	c.BindPort = t.GetAutoBindPort()
	c.AdvertiseAddr, c.AdvertisePort = p.ip.String(), c.BindPort
	c.EnableCompression = false // what is compressed is refused; see transport.go
	c.TCPTimeout = joinTimeout
	c.DeadNodeReclaimTime = 10 * time.Second
	c.Logger = stdLogger(p.o.Logger)
	p.o.Encryption.apply(c)
	d := (*delegate)(p)
	c.Delegate, c.Events, c.Alive, c.Merge = d, d, d, d
	if p.o.Tune != nil {
		p.o.Tune(c)
	}
	return c
}

// IP is the address that this node advertises to gossip.
func (p *Pool) IP() net.IP { return p.ip }

// Members lists the live nodes, this one included, one for each server id (the
// latest run), ordered by node id and then server id.
func (p *Pool) Members() []Member {
	p.mu.Lock()
	byServer := make(map[string]Member, len(p.live))
	for _, m := range p.live {
		if old, ok := byServer[m.ServerID]; !ok || old.Epoch < m.Epoch {
			byServer[m.ServerID] = m
		}
	}
	p.mu.Unlock()
	out := make([]Member, 0, len(byServer))
	for _, m := range byServer {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.NodeID, b.NodeID), cmp.Compare(a.ServerID, b.ServerID))
	})
	return out
}

// Find gives the latest run of a live server.
func (p *Pool) Find(serverID string) (found Member, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.live {
		if m.ServerID == serverID && (!ok || found.Epoch < m.Epoch) {
			found, ok = m, true
		}
	}
	return found, ok
}

// Known lists the gossip addresses of all nodes seen since the start, including
// those that are not alive now.
func (p *Pool) Known() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]string, 0, len(p.known))
	for _, a := range p.known {
		out = append(out, a)
	}
	slices.Sort(out)
	return out
}

// Join exchanges records with the nodes at addrs (host:port; names are resolved
// now) and returns how many answered. The error tells of those that did not. It
// blocks for at most a few seconds an address and stops early with ctx.
func (p *Pool) Join(ctx context.Context, addrs []string) (int, error) {
	joined, errs := 0, []error(nil)
	for _, a := range addrs {
		targets, err := resolveAddr(ctx, a)
		if err != nil {
			errs = append(errs, fmt.Errorf("join %s: %w", a, err))
			continue
		}
		for _, t := range targets {
			if !joinable(t) {
				errs = append(errs, fmt.Errorf("join %s: no node can be at %s", a, t))
				continue
			}
			if ctx.Err() != nil {
				return joined, errors.Join(append(errs, ctx.Err())...)
			}
			n, err := p.list.Join([]string{t})
			if err != nil {
				// The reason is only logged. With it the caller of a join could scan the
				// ports of other machines.
				differ := strings.Contains(err.Error(), "crypt") // memberlist has no type for these
				if differ && p.setKeysDiffer(a, true) {
					p.o.Logger.Warn("cannot gossip with a node because its keys differ from this node's, or only one of the two has keys", "address", a)
				}
				p.o.Logger.Debug("no node answers at an address to join", "address", a, "error", err)
				errs = append(errs, fmt.Errorf("no node answers at %s", a))
			}
			if n > 0 {
				p.setKeysDiffer(a, false)
			}
			joined += n
		}
	}
	return joined, errors.Join(errs...)
}

// setKeysDiffer remembers whether the node at an address has other keys. It reports whether
// that is new: each join tries the address again, and would log it again.
func (p *Pool) setKeysDiffer(addr string, differ bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.keysDiffer[addr]
	if !differ {
		delete(p.keysDiffer, addr)
	} else if len(p.keysDiffer) < maxKnown {
		p.keysDiffer[addr] = true
	}
	return before != differ
}

// joinable reports whether a node can be at an IP:port. It excludes multicast and
// unspecified addresses, and link-local ones, where clouds have metadata services.
func joinable(target string) bool {
	a, err := netip.ParseAddrPort(target)
	ip := a.Addr().Unmap()
	return err == nil && !ip.IsUnspecified() && !ip.IsMulticast() && !ip.IsLinkLocalUnicast() &&
		ip != netip.AddrFrom4([4]byte{255, 255, 255, 255}) && ip != netip.AddrFrom4([4]byte{168, 63, 129, 16})
}

// Update gossips this node's record again. It blocks until another node has
// received it, for two seconds at most.
func (p *Pool) Update() error { return p.list.UpdateNode(updateTimeout) }

// Close sends a leave message, so that the others notice at once, and stops. It
// changes nothing in any cluster.
func (p *Pool) Close() error {
	if p.closed.Swap(true) {
		return nil
	}
	p.stop()
	leave := p.list.Leave(updateTimeout)
	err := p.list.Shutdown()
	p.done.Wait()
	if err != nil {
		return fmt.Errorf("stop gossip: %w", err)
	}
	if leave != nil {
		p.o.Logger.Debug("no other node received the leave message", "error", leave)
	}
	return nil
}

// Crash stops without a leave message, like a killed process; for tests.
func (p *Pool) Crash() error {
	p.closed.Store(true)
	p.stop()
	defer p.done.Wait()
	return p.list.Shutdown()
}

// delegate is the Pool as memberlist sees it. Its methods run under
// memberlist's locks, hence they only touch the two maps.
type delegate Pool

func (d *delegate) NodeMeta(limit int) []byte {
	b, err := d.o.Meta().Encode()
	if err != nil || len(b) > limit {
		// Checked when the pool was opened; only the cluster id changes, and
		// room for it was part of that check.
		return nil
	}
	return b
}

func (d *delegate) NotifyMsg([]byte)                {}
func (d *delegate) GetBroadcasts(_, _ int) [][]byte { return nil }
func (d *delegate) LocalState(bool) []byte          { return nil }
func (d *delegate) MergeRemoteState([]byte, bool)   {}

// NotifyAlive and NotifyMerge are memberlist's two checks: for one node, and for all
// the records of a node with which records are exchanged.
func (d *delegate) NotifyAlive(n *memberlist.Node) error {
	m, err := DecodeMeta(n.Meta)
	if err != nil {
		return err
	}
	d.mu.Lock()
	_, known := d.live[n.Name]
	full := !known && !d.newcomers.admit(n, len(d.live))
	d.mu.Unlock()
	if full {
		return fmt.Errorf("over %d nodes are alive, and it has not answered yet", maxLive)
	}
	return d.o.Admit(m)
}

func (d *delegate) NotifyMerge(peers []*memberlist.Node) error {
	understood := len(peers) == 0
	for _, n := range peers {
		m, err := DecodeMeta(n.Meta)
		if err != nil {
			continue // a newer release among ours; NotifyAlive leaves it out
		}
		understood = true
		if n.State != memberlist.StateAlive && n.State != memberlist.StateSuspect {
			continue
		}
		if err := d.o.Admit(m); err != nil {
			return err
		}
	}
	if !understood {
		return errors.New("no record of the other side can be read: not Tarry nodes, or a newer release")
	}
	return nil
}

func (d *delegate) NotifyJoin(n *memberlist.Node) { d.set(n) }

func (d *delegate) NotifyUpdate(n *memberlist.Node) { d.set(n) }

func (d *delegate) set(n *memberlist.Node) {
	m, err := DecodeMeta(n.Meta)
	if err != nil {
		return // cannot be: NotifyAlive decoded it
	}
	host, _, err := net.SplitHostPort(m.ClusterAddr)
	if err != nil {
		host = n.Addr.String()
	}
	member := Member{Meta: m, GossipAddr: net.JoinHostPort(host, strconv.Itoa(int(n.Port)))}
	d.mu.Lock()
	d.live[n.Name] = member
	if _, ok := d.known[m.NodeID]; ok || len(d.known) < maxKnown {
		d.known[m.NodeID] = member.GossipAddr
	}
	d.mu.Unlock()
	d.o.Changed()
}

// NotifyLeave is called for a leave message and for a failure.
func (d *delegate) NotifyLeave(n *memberlist.Node) {
	d.mu.Lock()
	delete(d.live, n.Name)
	d.mu.Unlock()
	d.o.Changed()
}

// resolveBind gives the IP to listen on; an empty host means all.
func resolveBind(ctx context.Context, host string) (string, error) {
	if host == "" {
		return "0.0.0.0", nil
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return host, nil
	}
	ip, err := ResolveHost(ctx, host)
	if err != nil {
		return "", err
	}
	return ip.String(), nil
}

// ResolveHost gives the one IP by which others should reach a host: IPv4 before
// IPv6, and a loopback address only when there is no other.
func ResolveHost(ctx context.Context, host string) (net.IP, error) {
	if ip := net.ParseIP(host); ip != nil {
		return ip, nil
	}
	addrs, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("resolve %q: %w", host, err)
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("resolve %q: no address", host)
	}
	rank := func(ip net.IP) int {
		r := 0
		if ip.IsLoopback() {
			r += 2
		}
		if ip.To4() == nil {
			r++
		}
		return r
	}
	best := slices.MinFunc(addrs, func(a, b net.IPAddr) int {
		return cmp.Or(cmp.Compare(rank(a.IP), rank(b.IP)), slices.Compare(a.IP, b.IP))
	})
	return best.IP, nil
}

// resolveAddr gives every IP:port of a host:port. memberlist would resolve it
// too, but with a DNS query of its own that no context can end.
func resolveAddr(ctx context.Context, addr string) ([]string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("%q is not host:port: %w", addr, err)
	}
	if net.ParseIP(host) != nil {
		return []string{addr}, nil
	}
	ips, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("resolve %q: %w", host, err)
	}
	out := make([]string, 0, len(ips))
	for _, ip := range ips {
		out = append(out, net.JoinHostPort(ip.IP.String(), port))
	}
	return out, nil
}
