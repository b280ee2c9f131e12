// Command closed measures what it costs to close a cluster: TLS between the nodes, TLS with
// clients, enforced tokens, and all of it, against an open one.
//
//	go run ./bench/closed [flags]
//
// A comparison of two runs one after the other says little on a machine whose speed changes by the
// minute. So all clusters run side by side, three nodes each, and each is loaded for a second in
// turn, in a new order each time; what counts is the ratio to the open cluster of the same turn.
// With -rounds the clusters are made anew: two that are the same differ, too, by how their leaders
// and files happen to be. Run nothing else on the machine meanwhile.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"tarry/bench"
	"tarry/bench/localcluster"
)

// arm is a cluster that is closed in some way.
type arm struct {
	name                   string
	nodes, clients, tokens bool
	cluster                *localcluster.Cluster
}

func arms(parts bool) []*arm {
	all := []*arm{{name: "open"}, {name: "closed", nodes: true, clients: true, tokens: true}}
	if parts {
		all = append(all, &arm{name: "TLS between nodes", nodes: true}, &arm{name: "TLS with clients", clients: true}, &arm{name: "tokens", tokens: true})
	}
	return all
}

type config struct {
	rounds, turns int
	duration      time.Duration
	scenarios     string // comma-separated
	protocol      string
	binary        string
	parts         bool
}

// warmup is the load of a cluster before each measurement, in which connections are opened.
const warmup = 600 * time.Millisecond

func main() {
	c := config{}
	flag.IntVar(&c.rounds, "rounds", 4, "make the clusters this many `times`")
	flag.IntVar(&c.turns, "turns", 8, "measure each cluster this many `times` in each round, after one that does not count")
	flag.DurationVar(&c.duration, "duration", time.Second, "`time` of each measurement")
	flag.StringVar(&c.scenarios, "scenarios", "add,cycle,add-batch", "`names` of the scenarios of tarry bench")
	flag.StringVar(&c.protocol, "protocol", "http", "`http` or beanstalkd")
	flag.StringVar(&c.binary, "binary", "", "`file` to run; default: the tarry of this tree is built")
	flag.BoolVar(&c.parts, "parts", false, "measure each part alone, too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, c config) (err error) {
	if c.rounds < 1 || c.turns < 1 || flag.NArg() > 0 {
		return errors.New("usage: go run ./bench/closed [flags], with at least one round of one turn")
	}
	dir, err := os.MkdirTemp("", "tarry-closed-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if c.binary == "" {
		c.binary = filepath.Join(dir, "tarry")
		if out, err := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", c.binary, "./cmd/tarry").CombinedOutput(); err != nil {
			return fmt.Errorf("build tarry: %w\n%s", err, out)
		}
	}
	found := newRatios()
	for round := range c.rounds {
		if err := c.round(ctx, filepath.Join(dir, fmt.Sprint(round)), found); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "round %d of %d measured\n", round+1, c.rounds)
	}
	_, err = fmt.Print(found)
	return err
}

// round starts the clusters and loads each in turn.
func (c *config) round(ctx context.Context, dir string, found *ratios) (err error) {
	all := arms(c.parts)
	for i, a := range all {
		defer func() {
			if a.cluster != nil {
				err = errors.Join(err, a.cluster.Stop())
			}
		}()
		if err := a.start(ctx, c.binary, filepath.Join(dir, fmt.Sprint(i))); err != nil {
			return fmt.Errorf("start the cluster %s: %w", a.name, err)
		}
	}
	for _, scenario := range strings.Split(c.scenarios, ",") {
		for turn := range c.turns + 1 {
			measured := map[string]*bench.Result{}
			for _, i := range rand.Perm(len(all)) {
				res, err := c.measure(ctx, all[i], bench.Scenario(scenario))
				if err != nil {
					return fmt.Errorf("measure %s of the cluster %s: %w", scenario, all[i].name, err)
				}
				measured[all[i].name] = res
			}
			if turn > 0 {
				found.add(scenario, all, measured)
			}
		}
	}
	return nil
}

func (a *arm) start(ctx context.Context, binary, dir string) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	a.cluster, err = localcluster.New(localcluster.Options{Binary: binary, Dir: dir, Nodes: 3, SecureNodes: a.nodes, SecureClients: a.clients})
	if err == nil {
		err = a.cluster.Start()
	}
	if err != nil {
		return err
	}
	ready, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := a.cluster.WaitReady(ready, a.cluster.Nodes()...); err != nil || !a.tokens {
		return err
	}
	return a.cluster.Enforce(ready)
}

func (c *config) measure(ctx context.Context, a *arm, s bench.Scenario) (*bench.Result, error) {
	load := bench.Defaults(s, bench.Protocol(c.protocol))
	load.Duration, load.Warmup, load.Logger = c.duration, warmup, slog.New(slog.DiscardHandler)
	load.Load(a.cluster)
	if err := load.Validate(); err != nil {
		return nil, err
	}
	return bench.Run(ctx, load)
}
