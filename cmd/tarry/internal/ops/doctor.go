package ops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/server"
)

const doctorText = `Checks what goes wrong most often, and says what to do about it. It changes nothing.

A running cluster, with --addr: whether every member replies and resolves by name, is ready and
agrees about the leader; health, clocks, releases; the disks' speed and free space, open files and
the dates of certificates, from the nodes' metrics.

This machine, with --data-dir or --config (the file of tarry server), before a node starts or while
it runs: the disk's file system, flags, free space and speed of synced writes (for which it makes
a file in the directory, and removes it), permissions, limit of open files, clock, ports, DNS names
and certificate files. It connects to the ports, and does not listen, so a node can start at
any time; whether it may listen on a port below 1024 is not checked. Settings come from the file and from TARRY_* of the environment.

Each check is ok, warn or fail. Exit code 1 if one fails.`

// The outcomes of a check.
const (
	checkOK   = "ok"
	checkWarn = "warn"
	checkFail = "fail"
)

// check is one thing that was looked at.
type check struct {
	Check  string `json:"check"`
	Node   string `json:"node,omitzero"` // empty: the cluster, or this machine
	Status string `json:"status"`
	Found  string `json:"found"`
	Fix    string `json:"fix,omitzero"`
}

// checkup collects checks.
type checkup struct{ list []check }

func (c *checkup) ok(name, node, format string, args ...any) {
	c.list = append(c.list, check{Check: name, Node: node, Status: checkOK, Found: fmt.Sprintf(format, args...)})
}

func (c *checkup) warn(name, node, fix, format string, args ...any) {
	c.list = append(c.list, check{name, node, checkWarn, fmt.Sprintf(format, args...), fix})
}

func (c *checkup) fail(name, node, fix, format string, args ...any) {
	c.list = append(c.list, check{name, node, checkFail, fmt.Sprintf(format, args...), fix})
}

func (c *checkup) count(status string) (n int) {
	for _, one := range c.list {
		if one.Status == status {
			n++
		}
	}
	return n
}

func DoctorCommand() *cobra.Command {
	c := cli.NewCommand("doctor", "check a cluster, or this machine, and say what to do; exit code 1 if a check fails", "", doctorText, "tarry doctor --config /etc/tarry/tarry.yaml", 0, 0)
	dir := c.Flags.String("data-dir", "", "check this machine, with this data `directory` of a node")
	file := c.Flags.String("config", "", "check this machine, with the settings of this `file`")
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		var found checkup
		here := *dir != "" || *file != ""
		if here {
			cfg, err := settingsHere(*dir, *file, os.LookupEnv)
			if err != nil {
				return cli.UsageError{Err: err}
			}
			found.machine(ctx, cfg)
		}
		if !here || c.Given("addr") != "" {
			found.cluster(ctx, t)
		}
		if err := printChecks(t, &found); err != nil {
			return err
		}
		if n := found.count(checkFail); n > 0 {
			return fmt.Errorf("%d of %d checks failed", n, len(found.list))
		}
		return nil
	})
}

// settingsHere are the settings of a node on this machine.
func settingsHere(dir, file string, env func(string) (string, bool)) (*server.Config, error) {
	cfg := &server.Config{}
	fs := cfg.Flags()
	given := map[string]bool{}
	for name, value := range map[string]string{"data-dir": dir, "config": file} {
		if value != "" {
			given[name] = true
			if err := fs.Set(name, value); err != nil {
				return nil, err
			}
		}
	}
	return cfg, cfg.Complete(fs, given, env)
}

// printChecks prints one line for each check, and below it what to do.
func printChecks(t *cli.Terminal, c *checkup) error {
	if t.JSON {
		return cli.PrintAll(t, c.list, nil, nil)
	}
	var errs []error
	for _, one := range c.list {
		name := one.Check
		if one.Node != "" {
			name += " of " + one.Node
		}
		errs = append(errs, t.Out.Line("%-5s %s: %s", one.Status, name, one.Found))
		if one.Fix != "" {
			errs = append(errs, t.Out.Line("      %s", strings.TrimSpace(one.Fix)))
		}
	}
	errs = append(errs, t.Out.Line("%d ok, %d warn, %d fail", c.count(checkOK), c.count(checkWarn), c.count(checkFail)))
	return errors.Join(errs...)
}
