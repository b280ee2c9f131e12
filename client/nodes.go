package client

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// nodes are the addresses that a client knows, as base URLs: those that it was given, and
// those that it learned from replies.
type nodes struct {
	mu      sync.Mutex
	given   []string
	learned []string
	// first is asked first: the leader, or the node that replied last.
	first string
	// avoided are nodes that have failed recently: they are neither learned nor preferred
	// as the leader.
	avoided map[string]avoidance
	// members is when the client may ask the cluster for its members; zero until a response
	// has named the leader, which shows that there is a cluster.
	members  time.Time
	complete bool // the members were read, and none was forgotten since
	// usable reports whether calls may be made to an address.
	usable func(url string) bool
}

// avoidance is for how long a node is not used by itself.
type avoidance struct {
	until time.Time
	pause time.Duration // the last one; each is twice as long
}

const (
	avoidFailed      = 2 * time.Second // as the leader; by then another one leads
	avoidUnreachable = time.Minute     // an address from within a network that the client is not in
	maxAvoid         = time.Hour
	// maxNodes bounds what a client learns.
	maxNodes = 64
	// membersEvery is how often the members are asked for while that fails.
	membersEvery = 10 * time.Second
)

func newNodes(given []string) *nodes {
	return &nodes{given: given, first: given[rand.IntN(len(given))], avoided: map[string]avoidance{}, usable: func(string) bool { return true }}
}

// order lists the nodes for one round of attempts.
func (n *nodes) order() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := slices.Concat(n.given, n.learned)
	i := max(slices.Index(all, n.first), 0)
	return slices.Concat(all[i:], all[:i])
}

// configured lists the nodes for a call to one of those that were given.
func (n *nodes) configured() []string { return n.given }

// asGiven lists the nodes for a call whose caller names the node that is to serve it: those that
// were given, in their order, then the learned ones.
func (n *nodes) asGiven() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Concat(n.given, n.learned)
}

// replied records that a node has replied and, unless it is empty, the leader that it named.
func (n *nodes) replied(node, leader string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.avoided, node)
	if leader == "" {
		n.first = node
		return
	}
	if n.members.IsZero() {
		n.members = time.Now()
	}
	if url := sibling(node, leader); n.learn(url) {
		n.first = url
	} else {
		n.first = node
	}
}

// failed records that a node did not reply, or fell silent: the one after it is asked
// first. A learned one that could not even be connected to is forgotten.
func (n *nodes) failed(node string, connected bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if all := slices.Concat(n.given, n.learned); n.first == node {
		n.first = all[(slices.Index(all, node)+1)%len(all)]
	}
	pause := avoidFailed
	if i := slices.Index(n.learned, node); i >= 0 && !connected {
		pause = min(max(avoidUnreachable, 2*n.avoided[node].pause), maxAvoid)
		n.learned = slices.Delete(n.learned, i, i+1)
		n.complete = false
		n.members = time.Now().Add(pause)
	}
	n.avoided[node] = avoidance{time.Now().Add(pause), pause}
}

// learn adds an address, unless it is known or avoided, and reports whether the node can be
// used. It is called with n.mu held.
func (n *nodes) learn(url string) bool {
	if url == "" || !n.usable(url) || time.Now().Before(n.avoided[url].until) {
		return false
	}
	if slices.Contains(n.given, url) || slices.Contains(n.learned, url) {
		return true
	}
	if len(n.given)+len(n.learned) >= maxNodes {
		return false
	}
	n.learned = append(n.learned, url)
	return true
}

// wantsMembers reports whether the caller should ask for the members now.
func (n *nodes) wantsMembers() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if n.complete || n.members.IsZero() || now.Before(n.members) {
		return false
	}
	n.members = now.Add(membersEvery)
	return true
}

// meet learns the members of a cluster.
func (n *nodes) meet(members []Member) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.complete = true
	for _, m := range members {
		n.learn(sibling(n.given[0], m.HTTPAddress))
	}
}

// sibling returns the base URL of another node of the cluster; empty: addr is not host:port.
func sibling(node, addr string) string {
	scheme, _, _ := strings.Cut(node, "://")
	url, err := baseURL(scheme + "://" + addr)
	if err != nil {
		return ""
	}
	return url
}
