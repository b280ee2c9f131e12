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

// environment is where the nodes of a run live: their network and their disks.
type environment struct {
	have    fault.Needs
	network *network.Network // nil on loopback
	disks   *disk.Disks      // nil where there can be none
	next    string           // a server of the next release; empty: none
}

// newEnvironment looks at the machine and prepares what the configuration asks for.
func newEnvironment(ctx context.Context, c config, log *slog.Logger) (*environment, error) {
	e := &environment{next: c.next}
	if c.next != "" {
		e.have |= fault.NextRelease
	}
	if os.Geteuid() == 0 {
		e.have |= fault.Root
	}
	if _, err := exec.LookPath("strace"); err == nil && os.Geteuid() == 0 {
		e.have |= fault.Strace
	}
	if !c.secure {
		e.have |= fault.OpenNodes
	}
	if c.nodes >= 5 {
		e.have |= fault.FiveNodes
	}
	if fault.CPUGroups() == nil {
		e.have |= fault.Cgroup
	}
	hooks, err := hasHooks(c.binary)
	if err != nil {
		return nil, err
	}
	if hooks {
		e.have |= fault.HookBinary
	}
	if err := e.lay(ctx, c.network, log); err != nil {
		return nil, err
	}
	if err := e.mount(c.dir, log); err != nil {
		return nil, errors.Join(err, e.close())
	}
	log.Info("environment", "offers", e.have.String())
	return e, nil
}

// lay builds the network that --network names.
func (e *environment) lay(ctx context.Context, name string, log *slog.Logger) error {
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
	e.network = n
	e.have |= fault.Namespaces
	return nil
}

// mount prepares the nodes' disks below dir.
func (e *environment) mount(dir string, log *slog.Logger) (err error) {
	if err := disk.Available(); err != nil {
		log.Warn("no fault of disks is injected", "reason", err)
		return nil
	}
	e.disks, err = disk.NewDisks(dir)
	if err != nil {
		return fmt.Errorf("prepare the faulty disks: %w", err)
	}
	e.have |= fault.FaultyDisk
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
func (e *environment) options(o localcluster.Options) localcluster.Options {
	var places []func(id string) error
	if n := e.network; n != nil {
		places = append(places, func(id string) error { return n.Add(context.Background(), id) }) // a moment, and not left half done
		o.Prefix, o.Host, o.SamePorts = n.Prefix, n.Host, true
		o.Name = func(id string) string { return id }
	}
	if d := e.disks; d != nil {
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
func (e *environment) listen() (net.Listener, error) {
	host := "127.0.0.1"
	if e.network != nil {
		host = e.network.ClientsHost()
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("listen for the nodes: %w", err)
	}
	return l, nil
}

// prepare gives a fault what the environment offers.
func (e *environment) prepare(env *fault.Env) {
	env.Network, env.Disks, env.Next = e.network, e.disks, e.next
}

// close takes everything down that newEnvironment built. The nodes have ended.
func (e *environment) close() error {
	var errs []error
	if e.disks != nil {
		errs = append(errs, e.disks.Close())
	}
	if e.network != nil {
		errs = append(errs, e.network.Close())
	}
	return errors.Join(errs...)
}
