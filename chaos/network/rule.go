package network

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Rule is a fault of the packets that some nodes send to others. Shares are from 0 to 1 and
// apply to each packet independently.
type Rule struct {
	From []string // node ids, or Clients
	To   []string // node ids; a rule never applies to a node's packets to itself
	// Ports limits the rule to packets from or to one of them, TCP or UDP, at most 15.
	// Empty: all ports.
	Ports []int

	Loss      float64 // share that is dropped at the receiver; 1 is silence
	Duplicate float64 // share that is sent twice
	// Reset is the share of the packets of TCP that end their connection with a reset from the
	// receiver, which gets nothing; 1 refuses connections.
	Reset float64

	// Delay is added to each packet, plus or minus Jitter. The order stays, except that
	// a share of Reorder is not delayed and so overtakes others.
	Delay, Jitter time.Duration
	Reorder       float64
	// Rate is the bandwidth of each line in bytes per second; 0: not limited. Packets that
	// would wait for more than a second are dropped.
	Rate int
	// Seed of the choices about delays. Those about loss and duplication are
	// the kernel's own.
	Seed uint64
}

// String returns the rule for a log.
func (r Rule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v to %v", r.From, r.To)
	for _, part := range []struct {
		there bool
		name  string
		value any
	}{
		{len(r.Ports) > 0, "ports", r.Ports}, {r.Loss > 0, "loss", percent(r.Loss)}, {r.Duplicate > 0, "duplicate", percent(r.Duplicate)}, {r.Reset > 0, "reset", percent(r.Reset)},
		{r.Delay > 0, "delay", r.Delay.Round(time.Millisecond)}, {r.Jitter > 0, "jitter", r.Jitter.Round(time.Millisecond)}, {r.Reorder > 0, "reorder", percent(r.Reorder)},
		{r.Rate > 0, "bytes a second", r.Rate},
	} {
		if part.there {
			fmt.Fprintf(&b, ", %s %v", part.name, part.value)
		}
	}
	return b.String()
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

func (r Rule) check(ids []string) error {
	for _, id := range r.From {
		if id != Clients && !slices.Contains(ids, id) {
			return fmt.Errorf("a rule names %q, which is not in the network", id)
		}
	}
	for _, id := range r.To {
		if !slices.Contains(ids, id) {
			return fmt.Errorf("a rule names %q, which is not a node of the network", id)
		}
	}
	if slices.Contains(r.From, Clients) && r.Duplicate > 0 {
		return errors.New("packets of clients cannot be duplicated")
	}
	for _, share := range []float64{r.Loss, r.Duplicate, r.Reorder, r.Reset} {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("a rule has the share %v; it must be between 0 and 1", share)
		}
	}
	if len(r.Ports) > 15 || r.Delay < 0 || r.Jitter < 0 || r.Jitter > r.Delay || r.Rate < 0 {
		return errors.New("a rule has over 15 ports, or a delay, jitter or rate out of range")
	}
	return nil
}

// queued reports whether packets pass through this process.
func (r Rule) queued() bool { return r.Delay > 0 || r.Rate > 0 }

// effect has the rules of one Apply, with the queue of each line with a delay.
type effect struct {
	rules []Rule
	lines map[lineKey]*link
}

// lineKey identifies a queue: rules[rule] at the receiving node to.
type lineKey struct {
	rule int
	to   string
}

func (e *effect) stop() error {
	var errs []error
	for _, l := range e.lines {
		errs = append(errs, l.stop())
	}
	return errors.Join(errs...)
}

// touched returns the nodes whose iptables rules an effect changes.
func (e *effect) touched() []string {
	var ids []string
	for _, r := range e.rules {
		ids = append(ids, r.To...)
		if r.Duplicate > 0 {
			ids = append(ids, r.From...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Apply adds rules to those in force, and returns the function that removes them. That
// function also works after ctx has ended; further calls do nothing. If several rules delay
// a packet, the first one applies.
func (n *Network) Apply(ctx context.Context, rules ...Rule) (heal func() error, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errClosed
	}
	for _, r := range rules {
		if err := r.check(n.ids); err != nil {
			return nil, err
		}
	}
	e := &effect{rules: slices.Clone(rules), lines: map[lineKey]*link{}}
	for i, r := range e.rules {
		for _, to := range r.To {
			if !r.queued() {
				continue
			}
			n.queues++
			l, err := openLink(n.slot.namespace(to), n.queues, newLine(r))
			if err != nil {
				return nil, errors.Join(fmt.Errorf("delay packets to node %s: %w", to, err), e.stop())
			}
			e.lines[lineKey{i, to}] = l
		}
	}
	n.effects = append(n.effects, e)
	if err := n.install(ctx, e.touched()); err != nil {
		return nil, errors.Join(err, n.lift(e))
	}
	return func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.lift(e)
	}, nil
}

// lift ends an effect. It is called with n.mu held.
func (n *Network) lift(e *effect) error {
	at := slices.Index(n.effects, e)
	if at < 0 {
		return nil // lifted before, or the network is closed
	}
	n.effects = slices.Delete(n.effects, at, at+1)
	ctx, cancel := context.WithTimeout(context.Background(), teardown)
	defer cancel()
	// The queues are closed first: removing a rule drops the packets in its queue, and a
	// rule without its queue accepts them.
	return errors.Join(e.stop(), n.install(ctx, e.touched()))
}

// install sets the rules of all effects on nodes, each node's atomically. It is called with
// n.mu held.
func (n *Network) install(ctx context.Context, ids []string) error {
	for _, id := range ids {
		if id == Clients {
			continue
		}
		ns := n.slot.namespace(id)
		if err := run(ctx, n.table(id), "ip", "netns", "exec", ns, "iptables-restore", "--noflush"); err != nil {
			return fmt.Errorf("set the rules of node %s: %w", id, err)
		}
	}
	return nil
}

// table returns the rules of one node for iptables-restore. It empties the chains but does
// not create them again (--noflush), which would drop the packets in all their queues.
// Packets are dropped at the receiver, so that the sender does not notice. They are
// duplicated at the sender, because only there the copy is still sent.
func (n *Network) table(id string) string {
	var drops, copies, delays, resets []string
	add := func(list *[]string, chain string, r Rule, match, verdict string) {
		for _, ports := range portMatches(r.Ports) {
			*list = append(*list, strings.Join(slices.DeleteFunc([]string{"-A", chain, match, ports, verdict},
				func(s string) bool { return s == "" }), " "))
		}
	}
	for _, e := range n.effects {
		for i, r := range e.rules {
			for _, from := range r.From {
				if from == id || !slices.Contains(r.To, id) {
					continue
				}
				source := "-s " + n.sourceOf(from)
				if r.Loss > 0 {
					add(&drops, "PREROUTING", r, source, share(r.Loss)+"-j DROP")
				}
				if r.Reset > 0 { // but a reset must arrive
					for _, ports := range portMatches(r.Ports) {
						if ports == "" {
							ports = "-p tcp"
						}
						if strings.HasPrefix(ports, "-p tcp") {
							resets = append(resets, fmt.Sprintf("-A INPUT %s %s -m tcp ! --tcp-flags RST RST %s-j REJECT --reject-with tcp-reset", source, ports, share(r.Reset)))
						}
					}
				}
				if l := e.lines[lineKey{i, id}]; l != nil {
					// Bypass: if this process ends, packets are accepted.
					add(&delays, "PREROUTING", r, source, fmt.Sprintf("-j NFQUEUE --queue-num %d --queue-bypass", l.number))
				}
			}
			for _, to := range r.To {
				if to != id && slices.Contains(r.From, id) && r.Duplicate > 0 {
					peer := n.peerAddr(to).String()
					add(&copies, "POSTROUTING", r, "-d "+peer, share(r.Duplicate)+"-j TEE --gateway "+peer)
				}
			}
		}
	}
	// A packet from a queue skips the remaining rules, so delays are the last.
	lines := slices.Concat([]string{"*mangle", "-F PREROUTING", "-F POSTROUTING"}, drops, delays, copies, []string{"COMMIT"},
		[]string{"*filter", "-F INPUT"}, resets, []string{"COMMIT"})
	return strings.Join(lines, "\n") + "\n"
}

func (n *Network) sourceOf(id string) string {
	if id == Clients {
		return n.slot.address(clientsHost).String()
	}
	return n.peerAddr(id).String()
}

func share(s float64) string {
	if s == 1 {
		return ""
	}
	return fmt.Sprintf("-m statistic --mode random --probability %.6f ", s)
}

func portMatches(ports []int) []string {
	if len(ports) == 0 {
		return []string{""}
	}
	var list []string
	for _, p := range ports {
		list = append(list, strconv.Itoa(p))
	}
	joined := strings.Join(list, ",")
	return []string{"-p tcp -m multiport --ports " + joined, "-p udp -m multiport --ports " + joined}
}
