package fault

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"
	"unicode"

	"tarry/bench/localcluster"
	"tarry/chaos/stranger"
	"tarry/internal/sleep"
)

// Hostile returns the attacks of a machine on the network that is not a member, with its
// own address. They must not end a node, change the members, their addresses or the term,
// block other clients, or make memory grow. The judge checks the jobs as always.
func Hostile() []Fault {
	return []Fault{
		{Name: "hostile-cluster-port", Needs: OpenNodes, Weight: 1, Run: hostile(stranger.ClusterPort)},
		{Name: "hostile-gossip", Needs: OpenNodes, Weight: 1, Run: hostile(stranger.GossipPort)},
		{Name: "hostile-http", Weight: 1, Run: hostile(stranger.HTTPPort)},
		{Name: "hostile-beanstalkd", Weight: 1, Run: hostile(stranger.BeanstalkdPort)},
	}
}

const (
	// attacks is the number of attacks on a port in one injection.
	attacks = 2
	// attackLimit bounds one attack on one node.
	attackLimit = 30 * time.Second
	// believing is the time in which the cluster could act on a forged message.
	believing = 3 * time.Second
	// attackBegins is the time in which a crowd connects. honestLimit is how long other
	// clients may wait after that, because an election may be under way. Crowds stay
	// longer.
	attackBegins = 2 * time.Second
	honestLimit  = 5 * time.Second
	// naturalTerms is the number of terms that may begin on a busy machine during an
	// injection without an attack. Each attack on terms causes more.
	naturalTerms = 8
)

// hostile makes some of the attacks on a port, on the leader and another node.
func hostile(on func() []stranger.Attack) func(context.Context, *Env) error {
	return func(ctx context.Context, e *Env) error {
		all := on()
		e.Rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return e.attacked(ctx, all[:min(attacks, len(all))])
	}
}

// attacked makes attacks and then checks that the cluster is unchanged.
func (e *Env) attacked(ctx context.Context, list []stranger.Attack) error {
	nodes, err := e.All()
	if err != nil {
		return err
	}
	before, err := e.census(ctx)
	if err != nil {
		return err
	}
	memory := e.watchMemory(nodes)
	var names []string
	for _, a := range list {
		names = append(names, a.Name)
		if err = e.attack(ctx, a, nodes[0]); err != nil || ctx.Err() != nil {
			break
		}
	}
	sleep.For(ctx, believing)
	peak := memory()
	if peak > maxRSS {
		e.Violate("fault", "a node had %d MiB in memory under %v; the bound is %d", peak>>20, names, maxRSS>>20)
	}
	if err == nil && e.allLive(nodes, names) {
		err = e.compare(ctx, before, names)
	}
	return errors.Join(err, e.Return(ctx, nodes...))
}

// attack makes one attack on the leader and on another node at once, while a normal client
// sends requests to them.
func (e *Env) attack(ctx context.Context, a stranger.Attack, other *localcluster.Node) error {
	leader, err := e.currentLeader(ctx)
	if err != nil {
		return err
	}
	targets := []*localcluster.Node{leader}
	if other != leader {
		targets = append(targets, other)
	}
	e.Log.Info("attack", "attack", a.Name, "nodes", Names(targets))
	errs := make([]error, len(targets))
	var strangers sync.WaitGroup
	for i, n := range targets {
		s := &stranger.Stranger{From: e.strangerHost(), Target: e.reach(n), Rand: rand.New(rand.NewPCG(e.Rand.Uint64(), 0))}
		strangers.Go(func() { errs[i] = e.attackOne(ctx, a, s, n) })
	}
	strangers.Wait()
	e.Count("attacks", len(targets))
	return errors.Join(errs...)
}

// attackOne makes an attack on one node. An error means that it could not be made. allLive
// reports nodes that have ended.
func (e *Env) attackOne(ctx context.Context, a stranger.Attack, s *stranger.Stranger, n *localcluster.Node) error {
	ctx, cancel := context.WithTimeout(ctx, attackLimit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, s) }()
	sleep.For(ctx, attackBegins)
	honest := e.serves(ctx, n)
	err := <-done
	_, lied := errors.AsType[stranger.Believed](err)
	switch {
	case lied:
		e.Violate("fault", "%s: node %s: %v", a.Name, n.ID, err)
	case !n.Running() || ctx.Err() != nil:
	case honest != nil:
		e.Violate("fault", "%s: node %s did not serve others for %v: %v", a.Name, n.ID, honestLimit, honest)
	case err != nil:
		return fmt.Errorf("attack %s on node %s: %w", a.Name, n.ID, err)
	}
	return nil
}

// strangerHost is the address that attacks come from.
func (e *Env) strangerHost() string {
	if e.Network != nil {
		return e.Network.StrangerHost()
	}
	return "127.0.0.2"
}

// reach returns the addresses at which a stranger reaches a node: those of clients.
func (e *Env) reach(n *localcluster.Node) stranger.Node {
	host, _, _ := net.SplitHostPort(n.HTTP)
	at := func(addr string) string {
		_, port, _ := net.SplitHostPort(addr)
		return net.JoinHostPort(host, port)
	}
	return stranger.Node{HTTP: n.HTTP, Beanstalk: n.Beanstalk, Cluster: at(n.Cluster), Gossip: at(n.Gossip)}
}

// serves waits until the node accepts a job over HTTP and one over beanstalkd's protocol.
func (e *Env) serves(ctx context.Context, n *localcluster.Node) error {
	ctx, cancel := context.WithTimeout(ctx, honestLimit)
	defer cancel()
	job := map[string]any{"topic": "honest", "delay": 24 * 3600, "body": "x"}
	return errors.Join(
		localcluster.Until(ctx, func() error { return e.Cluster.Post(ctx, n, "/v1/jobs", job, nil) }),
		localcluster.Until(ctx, func() error { return put(ctx, n.Beanstalk) }))
}

// put adds a job over beanstalkd's protocol.
func put(ctx context.Context, addr string) error {
	c, err := (&net.Dialer{Timeout: askTimeout}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(askTimeout)); err != nil {
		return err
	}
	text := "use honest\r\nput 0 86400 60 23\r\nthe body of a usual job\r\n"
	if token := localcluster.Token(); token != "" {
		text = "auth " + token + "\r\n" + text
	}
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	for answers := bufio.NewScanner(c); answers.Scan(); {
		switch word, _, _ := strings.Cut(answers.Text(), " "); word {
		case "AUTHORIZED", "USING":
		case "INSERTED":
			return nil
		default:
			return fmt.Errorf("the reply to a put is %.40q", answers.Text())
		}
	}
	return errors.New("a put has no reply")
}

// allLive reports whether no process has ended.
func (e *Env) allLive(nodes []*localcluster.Node, names []string) bool {
	live := true
	for _, n := range nodes {
		if !n.Running() {
			out, _ := n.Output()
			e.Violate("fault", "%v ended node %s: %.500s", names, n.ID, out[max(0, len(out)-500):])
			live = false
		}
	}
	return live
}

// census is the state that a stranger must not change.
type census struct {
	members map[string]string // address and suffrage by id
	term    float64
}

func (e *Env) census(ctx context.Context) (census, error) {
	ctx, cancel := Healing(ctx)
	defer cancel()
	c := census{members: map[string]string{}}
	err := localcluster.Until(ctx, func() error {
		leader, err := e.Cluster.Leader(ctx)
		if err != nil {
			return err
		}
		var answer struct {
			Members []struct {
				ID, Address, Version string
				HTTPAddress          string `json:"http_address"`
				Voter                bool
			}
		}
		if err := e.Cluster.Get(ctx, leader, "/v1/cluster/members", &answer); err != nil {
			return err
		}
		clear(c.members)
		for _, m := range answer.Members {
			c.members[m.ID] = fmt.Sprintf("%s, clients %s, voter %v", m.Address, m.HTTPAddress, m.Voter)
			if strings.ContainsFunc(m.Version, unicode.IsControl) {
				c.members[m.ID] += fmt.Sprintf(", version %q", m.Version)
			}
		}
		return nil
	})
	c.term = e.term(ctx)
	return c, err
}

// compare takes the census again and reports differences.
func (e *Env) compare(ctx context.Context, before census, names []string) error {
	after, err := e.census(ctx)
	if err != nil {
		e.Violate("I6", "after %v: %v", names, err)
		return nil
	}
	if !maps.Equal(before.members, after.members) {
		e.Violate("fault", "%v changed the members from %v to %v", names, before.members, after.members)
	}
	if after.term > before.term+naturalTerms {
		e.Violate("fault", "%v raised the term from %.0f to %.0f", names, before.term, after.term)
	}
	return nil
}
