package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"

	"tarry/bench/localcluster"
	"tarry/chaos/disk"
	"tarry/chaos/fault"
	"tarry/chaos/network"
)

// ground is where the nodes of a run live: their network and their disks.
type ground struct {
	have    fault.Needs
	network *network.Network // nil on loopback
	disks   *disk.Disks      // nil where there can be none
	next    string           // a server of the next release; empty: none
}

// newGround looks at the machine and prepares what the configuration asks for.
func newGround(ctx context.Context, c config, log *slog.Logger) (*ground, error) {
	g := &ground{next: c.next}
	if c.next != "" {
		g.have |= fault.NextRelease
	}
	if os.Geteuid() == 0 {
		g.have |= fault.Root
	}
	if _, err := exec.LookPath("strace"); err == nil && os.Geteuid() == 0 {
		g.have |= fault.Strace
	}
	if c.nodes >= 5 {
		g.have |= fault.FiveNodes
	}
	if fault.CPUGroups() == nil {
		g.have |= fault.Cgroup
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
	if err := g.mount(c.dir, log); err != nil {
		return nil, errors.Join(err, g.close())
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

// mount prepares the nodes' disks below dir.
func (g *ground) mount(dir string, log *slog.Logger) (err error) {
	if err := disk.Available(); err != nil {
		log.Warn("no fault of disks is injected", "reason", err)
		return nil
	}
	g.disks, err = disk.NewDisks(dir)
	if err != nil {
		return fmt.Errorf("prepare the faulty disks: %w", err)
	}
	g.have |= fault.FaultyDisk
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
	var places []func(id string) error
	if n := g.network; n != nil {
		places = append(places, func(id string) error { return n.Add(context.Background(), id) }) // a moment, and not left half done
		o.Prefix, o.Host, o.SamePorts = n.Prefix, n.Host, true
		o.Name = func(id string) string { return id }
	}
	if d := g.disks; d != nil {
		places = append(places, d.Add)
		o.DataDir = d.DataDir
	}
	o.Prepare = func(id string) error {
		for _, place := range places {
			if err := place(id); err != nil {
				return err
			}
		}
		return nil
	}
	return o
}

// listen opens a port of this process that the nodes can reach.
func (g *ground) listen() (net.Listener, error) {
	host := "127.0.0.1"
	if g.network != nil {
		host = g.network.ClientsHost()
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("listen for the nodes: %w", err)
	}
	return l, nil
}

// prepare gives a fault what the ground offers.
func (g *ground) prepare(e *fault.Env) { e.Network, e.Disks, e.Next = g.network, g.disks, g.next }

// close takes everything down that newGround built. The nodes have ended.
func (g *ground) close() error {
	var errs []error
	if g.disks != nil {
		errs = append(errs, g.disks.Close())
	}
	if g.network != nil {
		errs = append(errs, g.network.Close())
	}
	return errors.Join(errs...)
}
