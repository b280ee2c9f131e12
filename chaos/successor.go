package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"tarry/bench/localcluster"
	"tarry/chaos/workload"
)

// successor is what serves the clients when the cluster of a run, or its state, is lost at its end.
type successor interface {
	// begin prepares it when the cluster serves, before the load.
	begin(ctx context.Context) error
	// follow keeps it up to date under load and faults until ctx ends. Its error means that
	// the harness failed.
	follow(ctx context.Context) error
	// catchUp brings it up to date with the healed cluster, which has no load any more.
	catchUp(ctx context.Context) error
	// takeOver kills the cluster, unless it goes on, and makes the successor serve.
	takeOver(ctx context.Context) (*localcluster.Cluster, error)
	// stop ends its processes. It may be called at any time.
	stop() error
	// summary says what it did.
	summary() string
}

// newSuccessor returns what --recover-from names, nil for nothing.
func newSuccessor(r *run, push string) (successor, error) {
	switch r.recoverFrom {
	case "":
		return nil, nil
	case "backup":
		return newBackups(r, push)
	case "standby":
		return newStandby(r, push)
	case "replace":
		return newInPlace(r, push)
	default:
		return nil, fmt.Errorf("--recover-from is %q; it takes backup, standby or replace", r.recoverFrom)
	}
}

// successorCluster is a cluster on loopback, without faults, that reaches the target of pushes.
func (r *run) successorCluster(nodes int, push string) (*localcluster.Cluster, error) {
	return localcluster.New(localcluster.Options{
		Binary: r.binary, Dir: filepath.Join(r.dir, r.recoverFrom), Nodes: nodes, Env: r.hooks(), Args: []string{"--push-allow", push},
	})
}

// errBroken is wrapped by errors that mean a broken promise, and not that nothing could be decided.
var errBroken = errors.New("a promise is broken")

// replace lets the successor serve the clients.
func (r *run) replace(ctx context.Context) error {
	r.log.Info("waiting until nothing is reserved or posted")
	r.load.Target.Calm()
	if err := workload.AwaitIdle(ctx, r.load); err != nil {
		return err
	}
	if err := r.successor.catchUp(ctx); err != nil {
		return err
	}
	r.log.Info("recovering", "from", r.recoverFrom)
	c, err := r.successor.takeOver(ctx)
	if err != nil {
		return err
	}
	r.serving = c
	r.load.Nodes = nodesOf(c)
	return nil
}

// followed runs f while the successor follows, and keys are rotated.
func (r *run) followed(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	var succeeding, rotating error
	if r.successor != nil {
		following.Go(func() { succeeding = r.successor.follow(ctx) })
	}
	if r.rotation != nil {
		following.Go(func() { rotating = r.rotation.follow(ctx) })
	}
	err := f()
	cancel()
	following.Wait()
	return errors.Join(err, succeeding, rotating)
}

// commandLimit bounds one command of the server's binary.
const commandLimit = time.Minute

// tarry runs a command and returns what it prints.
func (r *run) tarry(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	var out, problem strings.Builder
	cmd := exec.CommandContext(ctx, r.binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("tarry %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(problem.String()))
	}
	return out.String(), nil
}

// backUp makes a backup at one of the cluster's nodes, with what tarry prints.
func (r *run) backUp(ctx context.Context, file string, args ...string) (string, error) {
	return r.tarry(ctx, append([]string{"backup", "--json", "--patience", "10s", "--out", file, "--addr", strings.Join(addresses(r.cluster), ",")}, args...)...)
}

// addresses are those for HTTP of a cluster's nodes.
func addresses(c *localcluster.Cluster) (all []string) {
	for _, n := range c.Nodes() {
		all = append(all, n.HTTP)
	}
	return all
}
