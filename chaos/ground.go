package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"

	"tarry/bench/localcluster"
	"tarry/chaos/fault"
	"tarry/chaos/network"
)

// ground is where the nodes of a run live: their network and their disks.
type ground struct {
	have    fault.Needs
	network *network.Network // nil on loopback
}

// newGround looks at the machine and prepares what the configuration asks for.
func newGround(ctx context.Context, c config, log *slog.Logger) (*ground, error) {
	g := &ground{}
	if os.Geteuid() == 0 {
		g.have |= fault.Root
	}
	if _, err := exec.LookPath("strace"); err == nil && os.Geteuid() == 0 {
		g.have |= fault.Strace
	}
	hooks, err := hasHooks(c.binary)
	if err != nil {
		return nil, err
	}
	if hooks {
		g.have |= fault.HookBinary
	}
	if err := g.lay(ctx, c.network, log); err != nil {
		return nil, err
	}
	log.Info("ground", "offers", g.have.String())
	return g, nil
}

// lay builds the network that --network names.
func (g *ground) lay(ctx context.Context, name string, log *slog.Logger) error {
	switch name {
	case "loopback":
		return nil
	case "auto", "namespaces":
	default:
		return fmt.Errorf("--network is %q; it takes auto, loopback or namespaces", name)
	}
	if err := network.Available(); err != nil {
		if name == "auto" {
			log.Warn("the nodes live on loopback, and no fault of the network is injected", "reason", err)
			return nil
		}
		return err
	}
	n, err := network.New(ctx)
	if err != nil {
		return err
	}
	g.network = n
	g.have |= fault.Namespaces
	return nil
}

// hasHooks reports whether a binary was built with -tags chaos.
func hasHooks(binary string) (bool, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return false, fmt.Errorf("read how the server was built: %w", err)
	}
	return slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool {
		return s.Key == "-tags" && slices.Contains(strings.Split(s.Value, ","), "chaos")
	}), nil
}

// options places the nodes of a cluster.
func (g *ground) options(o localcluster.Options) localcluster.Options {
	if n := g.network; n != nil {
		o.Prepare = func(id string) error { return n.Add(context.Background(), id) } // a moment, and not left half done
		o.Prefix, o.Host = n.Prefix, n.Host
		o.Name = func(id string) string { return id }
	}
	return o
}

// prepare gives a fault what the ground offers.
func (g *ground) prepare(e *fault.Env) { e.Network = g.network }

// close takes everything down that newGround built.
func (g *ground) close() error {
	if g.network == nil {
		return nil
	}
	return g.network.Close()
}
