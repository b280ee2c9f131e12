package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"tarry/chaos/history"
)

// Exit codes. Only 0 means that nothing was found.
const (
	exitOK        = 0
	exitViolation = 1
	exitFailed    = 2 // the harness, or its command line
	exitUndecided = 3
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func command(ctx context.Context, args []string, out, notes io.Writer) int {
	code, err := dispatch(ctx, args, out, notes)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		_, _ = fmt.Fprintln(notes, "chaos:", err) // nobody is left to tell
		return exitFailed
	}
	return code
}

func dispatch(ctx context.Context, args []string, out, notes io.Writer) (int, error) {
	if len(args) > 0 && args[0] == "check" {
		return checkFile(args[1:], out)
	}
	c, err := parse(args, notes)
	if err != nil {
		return 0, err
	}
	return chaos(ctx, c, out, notes)
}

// checkFile judges a history that a run has kept.
func checkFile(args []string, out io.Writer) (int, error) {
	if len(args) != 1 {
		return 0, errors.New("usage: chaos check FILE")
	}
	ops, err := history.ReadFile(args[0])
	if err != nil {
		return 0, err
	}
	r := &report{Again: "go run ./chaos check " + args[0]}
	r.check(ops, history.Options{ClockBound: clockBound})
	if err := r.print(out, false); err != nil {
		return 0, err
	}
	return exitCode(r), nil
}

func exitCode(r *report) int {
	switch r.Verdict() {
	case noViolation:
		return exitOK
	case undecided:
		return exitUndecided
	default:
		return exitViolation
	}
}

// defaultMaxGap is I6 for a machine that may be slow and busy: a bound on a
// defect, not on speed. The report has the measured time.
const defaultMaxGap = 15 * time.Second

func parse(args []string, notes io.Writer) (config, error) {
	var c config
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	f.SetOutput(notes)
	f.DurationVar(&c.duration, "duration", time.Minute, "how long to inject faults under load")
	f.Uint64Var(&c.seed, "seed", uint64(time.Now().UnixNano()%1_000_000), "repeats a schedule: faults, victims, times, the clients' choices")
	f.StringVar(&c.faults, "faults", "", "`names` with commas; default: every fault that this machine can do; none: no faults. There are: "+list(catalogue()))
	f.StringVar(&c.logStores, "log-store", "", "what the nodes keep their Raft logs in, `names` with commas that the nodes take in turn; default: the server's")
	f.IntVar(&c.trailing, "trailing", 500, "`entries` of the Raft log that nodes keep, few enough for followers to need the whole state; 0: as many as the server likes")
	f.StringVar(&c.mutant, "mutant", "", "switch a defect of the server on, to see it found: drop-add, deliver-early, deliver-late, hand-out-twice, forget-delete, half-batch, forget-postpone, ignore-condition, finish-unposted, forget-header, drop-import, forget-attempts, forget-quota, halve-quota, stale-read, forget-revoke (with --tokens), any-authority and keep-key (with --secure), skip-fsync")
	f.StringVar(&c.binary, "binary", "", "`path` of a server; default: build one with -tags chaos")
	f.StringVar(&c.dir, "dir", "", "`directory` for data, logs and the history, which is kept; default: a temporary one, kept unless nothing was found")
	f.BoolVar(&c.tokens, "tokens", false, "the cluster checks tokens; clients make, rotate and revoke some, too")
	f.BoolVar(&c.secure, "secure", false, "the nodes speak TLS with each other and encrypt gossip, and their authority, certificates and gossip keys are replaced again and again")
	f.StringVar(&c.recoverFrom, "recover-from", "", "what serves after the loss of the whole cluster at the end, and is drained and judged: `backup`, the last of many, restored, or standby, promoted; or replace: the cluster itself, whose state the last backup replaces while leaders are killed; default: nothing is lost")
	f.IntVar(&c.nodes, "nodes", 3, "nodes of the cluster")
	f.StringVar(&c.network, "network", "auto", "auto, loopback or namespaces")
	f.BoolVar(&c.json, "json", false, "print one JSON object")
	f.DurationVar(&c.drain, "drain", 3*time.Minute, "how long to wait until every job is finished and the nodes' states are compared; then nothing is decided")
	f.DurationVar(&c.maxGap, "max-gap", defaultMaxGap, "longest time without an acknowledged write after a heal; 0: any")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	switch {
	case f.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case c.recoverFrom != "" && c.tokens:
		return c, errors.New("--recover-from and --tokens exclude each other")
	case c.duration <= 0 || c.nodes < 1:
		return c, errors.New("--duration and --nodes must be positive")
	}
	return c, nil
}

// again is the command that repeats the run.
func (c config) again() string {
	parts := []string{"go run ./chaos", "--duration", c.duration.String(), "--seed", fmt.Sprint(c.seed), "--nodes", fmt.Sprint(c.nodes), "--network", c.network, "--trailing", fmt.Sprint(c.trailing)}
	for _, p := range [][2]string{{"--faults", c.faults}, {"--log-store", c.logStores}, {"--mutant", c.mutant}, {"--binary", c.binary}, {"--recover-from", c.recoverFrom}} {
		if p[1] != "" {
			parts = append(parts, p[0], p[1])
		}
	}
	if c.tokens {
		parts = append(parts, "--tokens")
	}
	if c.secure {
		parts = append(parts, "--secure")
	}
	return strings.Join(parts, " ")
}

// chaos makes one run in its directory.
func chaos(ctx context.Context, c config, out, notes io.Writer) (int, error) {
	temporary := c.dir == ""
	c.keep = !temporary
	var err error
	if temporary {
		c.dir, err = os.MkdirTemp("", "tarry-chaos-")
	} else {
		err = os.MkdirAll(c.dir, 0o755)
	}
	if err != nil {
		return 0, fmt.Errorf("make a directory for the run: %w", err)
	}
	log := slog.New(slog.NewTextHandler(notes, nil))
	log.Info("chaos", "seed", c.seed, "duration", c.duration, "dir", c.dir)
	r, err := execute(ctx, c, log)
	if err != nil {
		return 0, fmt.Errorf("%w\nthe directory is kept: %s", err, c.dir)
	}
	if temporary && r.Verdict() == noViolation {
		if err := os.RemoveAll(c.dir); err != nil {
			return 0, err
		}
	}
	return exitCode(r), r.print(out, c.json)
}
