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
)

// ground is where the nodes of a run live: their network and their disks.
type ground struct {
	have fault.Needs
}

// newGround looks at the machine and prepares what the configuration asks for.
func newGround(_ context.Context, c config, log *slog.Logger) (*ground, error) {
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
	switch c.network {
	case "auto", "loopback":
	case "namespaces":
		return nil, fmt.Errorf("--network namespaces: not built yet")
	default:
		return nil, fmt.Errorf("--network is %q; it takes auto, loopback or namespaces", c.network)
	}
	log.Info("ground", "offers", g.have.String())
	return g, nil
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
func (g *ground) options(o localcluster.Options) localcluster.Options { return o }

// prepare gives a fault what the ground offers.
func (g *ground) prepare(*fault.Env) {}

// close takes everything down that newGround built.
func (g *ground) close() error { return nil }
