package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"tarry/bench/localcluster"
	"tarry/chaos/network"
	"tarry/internal/sleep"
)

// Network returns the faults of the network between nodes. Clients always reach all nodes,
// so a node that is cut off from the others still gets requests.
func Network() []Fault {
	faults := []Fault{
		{Name: "partition-leader", Weight: 8, Overlaps: true, Run: partition((*Env).Leader, aside)},
		{Name: "partition-follower", Weight: 2, Overlaps: true, Run: partition((*Env).Follower, aside)},
		{Name: "leader-cannot-send", Weight: 2, Overlaps: true, Run: partition((*Env).Leader, cannotSend)},
		{Name: "leader-cannot-receive", Weight: 2, Overlaps: true, Run: partition((*Env).Leader, cannotReceive)},
		{Name: "raft-only-partition", Weight: 1, Overlaps: true, Run: partition((*Env).Leader, clusterPort)},
		{Name: "flapping-leader", Weight: 2, Overlaps: true, Run: onOne((*Env).Leader, flapping)},
		{Name: "partition-halves", Weight: 2, Run: everywhere(halves)},
		{Name: "partition-bridge", Weight: 2, Run: everywhere(bridge)},
		{Name: "partition-ring", Needs: FiveNodes, Weight: 4, Run: everywhere(ring)},
		{Name: "gossip-only-partition", Weight: 1, Run: onAll(gossipOnly)},
		{Name: "loss", Weight: 2, Run: everywhere(loss)},
		{Name: "delay", Weight: 2, Run: everywhere(delay)},
		{Name: "duplication", Weight: 1, Run: everywhere(duplication)},
		{Name: "reordering", Weight: 1, Run: everywhere(reordering)},
		{Name: "narrow-lines", Weight: 1, Run: everywhere(narrow)},
		{Name: "resets", Weight: 2, Run: everywhere(resets)},
		{Name: "refused-leader", Weight: 1, Overlaps: true, Run: partition((*Env).Leader, refusing)},
		{Name: "dns-outage", Weight: 2, Run: onAll(dnsOutage)},
		{Name: "new-addresses", Weight: 1, Run: onAll(newAddresses)},
		{Name: "new-addresses-restart", Weight: 1, Run: onAll(newAddressesRestart)},
	}
	for i := range faults {
		faults[i].Needs |= Namespaces
	}
	return faults
}

// ids returns the names of all nodes, running or not.
func (e *Env) ids() []string {
	var ids []string
	for _, n := range e.Cluster.Nodes() {
		ids = append(ids, n.ID)
	}
	return ids
}

// ports returns one port of every node, such as that of gossip.
func (e *Env) ports(addr func(*localcluster.Node) string) []int {
	var ports []int
	for _, n := range e.Cluster.Nodes() {
		_, port, err := net.SplitHostPort(addr(n))
		p, err2 := strconv.Atoi(port)
		if err != nil || err2 != nil {
			panic(fmt.Sprintf("node %s has the address %q", n.ID, addr(n)))
		}
		ports = append(ports, p)
	}
	return ports
}

func gossipAddr(n *localcluster.Node) string  { return n.Gossip }
func clusterAddr(n *localcluster.Node) string { return n.Cluster }

// silence drops all packets between nodes in one direction.
func silence(from, to []string, ports ...int) network.Rule {
	return network.Rule{From: from, To: to, Ports: ports, Loss: 1}
}

// parted drops all packets between two groups.
func parted(a, b []string, ports ...int) []network.Rule {
	return []network.Rule{silence(a, b, ports...), silence(b, a, ports...)}
}

// cut returns the rules that partition a victim.
type cut func(e *Env, victim string, others []string) []network.Rule

func aside(_ *Env, victim string, others []string) []network.Rule {
	return parted([]string{victim}, others)
}

// cannotSend cuts a leader off so that it receives from its followers but they do not
// receive from it.
func cannotSend(_ *Env, victim string, others []string) []network.Rule {
	return []network.Rule{silence([]string{victim}, others)}
}

// cannotReceive cuts a leader off so that its followers receive from it but it does not
// receive their replies.
func cannotReceive(_ *Env, victim string, others []string) []network.Rule {
	return []network.Rule{silence(others, []string{victim})}
}

// clusterPort cuts off Raft and forwarding while gossip reports all nodes as alive.
func clusterPort(e *Env, victim string, others []string) []network.Rule {
	return parted([]string{victim}, others, e.ports(clusterAddr)...)
}

// partition partitions one node for a while.
func partition(choose choice, which cut) func(context.Context, *Env) error {
	return onOne(choose, func(ctx context.Context, e *Env, victim *localcluster.Node) error {
		rules := which(e, victim.ID, e.without(victim))
		return errors.Join(e.broken(ctx, e.Hold(), rules), e.Return(ctx, victim))
	})
}

func (e *Env) without(victim *localcluster.Node) []string {
	return slices.DeleteFunc(e.ids(), func(id string) bool { return id == victim.ID })
}

// broken keeps rules in force for a while.
func (e *Env) broken(ctx context.Context, hold time.Duration, rules []network.Rule) error {
	for _, r := range rules {
		e.Log.Info("lines break", "rule", r.String(), "for", hold.Round(time.Millisecond))
	}
	heal, err := e.Network.Apply(ctx, rules...)
	if err != nil {
		if ctx.Err() != nil {
			return nil // the run ended before the fault began
		}
		return err
	}
	sleep.For(ctx, hold)
	return heal()
}

// flapping cuts the leader off repeatedly, for times around the election timeout.
func flapping(ctx context.Context, e *Env, victim *localcluster.Node) error {
	rules := aside(e, victim.ID, e.without(victim))
	e.Log.Info("lines flap", "node", victim.ID)
	var errs []error
	for end := time.Now().Add(e.Hold()); time.Now().Before(end) && ctx.Err() == nil; {
		heal, err := e.Network.Apply(ctx, rules...)
		if err != nil {
			if ctx.Err() == nil {
				errs = append(errs, err)
			}
			break
		}
		sleep.For(ctx, e.Between(50*time.Millisecond, 800*time.Millisecond))
		errs = append(errs, heal())
		sleep.For(ctx, e.Between(50*time.Millisecond, 800*time.Millisecond))
	}
	return errors.Join(append(errs, e.Return(ctx, victim))...)
}

// everywhere applies rules to the whole cluster for a while and counts the new terms.
func everywhere(rules func(*Env, []string) []network.Rule) func(context.Context, *Env) error {
	return onAll(func(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
		ids := e.ids()
		e.Rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		before := e.term(ctx)
		err := errors.Join(e.broken(ctx, e.Hold(), rules(e, ids)), e.Return(ctx, nodes...))
		e.countTerms(ctx, before)
		return err
	})
}

// term returns the highest Raft term of the running nodes; 0 if none replies.
func (e *Env) term(ctx context.Context) float64 {
	ctx, cancel := Healing(ctx)
	defer cancel()
	highest := 0.0
	for _, n := range e.Cluster.Nodes() {
		if t, err := e.metric(ctx, n, `tarry_raft_term{shard="0"}`); err == nil {
			highest = max(highest, t)
		}
	}
	return highest
}

func (e *Env) countTerms(ctx context.Context, before float64) {
	if after := e.term(ctx); before > 0 && after > before {
		e.Count("terms begun under faults of all lines", int(after-before))
	}
}

// halves divides the nodes so that one side, or both, has no quorum.
func halves(e *Env, ids []string) []network.Rule {
	at := 1
	if len(ids) > 2 {
		at += e.Rand.IntN(len(ids) - 1)
	}
	return parted(ids[:at], ids[at:])
}

// bridge divides the nodes into two halves that both reach one node in the middle. With
// three nodes, two cannot reach each other and the third reaches both.
func bridge(_ *Env, ids []string) []network.Rule {
	middle := len(ids) / 2
	return parted(ids[:middle], ids[middle+1:])
}

// ring leaves each node only its neighbours. So each reaches a majority, and no two nodes
// the same one. With fewer than five nodes all reach all.
func ring(_ *Env, ids []string) []network.Rule {
	reach := (len(ids)/2 + 1) / 2
	var rules []network.Rule
	for i, from := range ids {
		var far []string
		for j, to := range ids {
			if apart := (j - i + len(ids)) % len(ids); min(apart, len(ids)-apart) > reach {
				far = append(far, to)
			}
		}
		rules = append(rules, silence([]string{from}, far))
	}
	return rules
}

func loss(e *Env, ids []string) []network.Rule {
	return []network.Rule{{From: ids, To: ids, Loss: 0.01 + 0.29*e.Rand.Float64()}}
}

func delay(e *Env, ids []string) []network.Rule {
	d := e.Between(10*time.Millisecond, 500*time.Millisecond)
	return []network.Rule{{From: ids, To: ids, Delay: d, Jitter: d / 4, Seed: e.Rand.Uint64()}}
}

func duplication(_ *Env, ids []string) []network.Rule {
	return []network.Rule{{From: ids, To: ids, Duplicate: 0.5}}
}

func reordering(e *Env, ids []string) []network.Rule {
	return []network.Rule{{From: ids, To: ids, Delay: 10 * time.Millisecond, Reorder: 0.3, Seed: e.Rand.Uint64()}}
}

// resets ends connections between nodes at random: one in twenty to one in a thousand packets.
func resets(e *Env, ids []string) []network.Rule {
	share := []float64{0.05, 0.01, 0.001}[e.Rand.IntN(3)]
	return []network.Rule{{From: ids, To: ids, Reset: share}}
}

// refusing resets every packet to and from a node.
func refusing(_ *Env, id string, others []string) []network.Rule {
	return []network.Rule{{From: []string{id}, To: others, Reset: 1}, {From: others, To: []string{id}, Reset: 1}}
}

// dnsOutage takes the nodes' DNS server away. The cluster must go on, also when the leader dies
// meanwhile; a node that starts may have to wait for the server.
func dnsOutage(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
	how := []network.Outage{network.Silent, network.Failing, network.Forgetful}[e.Rand.IntN(3)]
	e.Log.Info("no names are resolved", "how", how)
	heal := e.Network.FailNames(how)
	defer heal()
	sleep.For(ctx, e.Hold())
	leader, err := e.currentLeader(ctx)
	if err != nil {
		return err
	}
	kills := e.Rand.IntN(3) > 0
	if kills {
		e.Log.Info("kill -9", "node", leader.ID)
		if err := leader.Kill(); err != nil {
			return err
		}
		if !until(ctx, healing, func() bool { return e.othersLead(ctx, leader) }) && ctx.Err() == nil {
			e.Violate("I6", "without names no other node leads after node %s was killed", leader.ID)
		}
	}
	sleep.For(ctx, e.Hold())
	if kills && e.Rand.IntN(2) == 0 {
		if err := leader.Start(); err != nil { // without names
			return err
		}
		sleep.For(ctx, e.Hold())
	}
	heal()
	return e.Return(ctx, nodes...)
}

// narrow limits the bandwidth to a megabit a second.
func narrow(e *Env, ids []string) []network.Rule {
	return []network.Rule{{From: ids, To: ids, Rate: 125_000, Seed: e.Rand.Uint64()}}
}

// gossipTime is long enough for gossip to report all nodes as dead.
const gossipTime = 15 * time.Second

// gossipOnly cuts gossip between all nodes while Raft continues. No member may be removed
// because of that.
func gossipOnly(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
	before, err := e.voters(ctx)
	if err != nil {
		return err
	}
	ids := e.ids()
	err = e.broken(ctx, gossipTime, []network.Rule{silence(ids, ids, e.ports(gossipAddr)...)})
	after, err2 := e.voters(ctx)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if !slices.Equal(before, after) {
		e.Violate("fault", "while only gossip was cut the voters changed from %v to %v", before, after)
	}
	return e.Return(ctx, nodes...)
}

// voters returns the ids of the voters as the leader lists them, in order.
func (e *Env) voters(ctx context.Context) ([]string, error) {
	ctx, cancel := Healing(ctx)
	defer cancel()
	leader, err := e.currentLeader(ctx)
	if err != nil {
		return nil, err
	}
	members, err := e.Cluster.Members(ctx, leader)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, m := range members {
		if m.Voter {
			ids = append(ids, m.ID)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// newAddresses changes all nodes' addresses at once while they run.
func newAddresses(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
	if err := e.move(ctx); err != nil {
		return err
	}
	return e.Return(ctx, nodes...)
}

// newAddressesRestart restarts every process with a new address, like a container platform
// that moves all of them.
func newAddressesRestart(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
	var errs []error
	for _, n := range nodes {
		errs = append(errs, n.Kill())
	}
	errs = append(errs, e.move(ctx))
	return errors.Join(append(errs, e.Return(ctx, nodes...))...)
}

func (e *Env) move(ctx context.Context) error {
	how, name := network.Fresh, "fresh"
	if e.Rand.IntN(2) == 0 {
		how, name = network.Rotate, "each other's"
	}
	e.Log.Info("all nodes get new addresses", "which", name)
	ctx, cancel := Healing(ctx) // the end of the run must not interrupt it
	defer cancel()
	return e.Network.Readdress(ctx, how)
}
