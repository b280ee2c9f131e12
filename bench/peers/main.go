package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"tarry/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// options is the command line.
type options struct {
	settings
	root   string // of the repository
	tarry  string
	nats   string
	dir    string
	out    string
	only   string
	list   string
	pages  bool
	quick  bool
	full   bool
	origin string // the command as a person gave it
}

func parse(args []string) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("peers", flag.ContinueOnError)
	fs.StringVar(&o.root, "root", "../..", "`directory` of the repository: its tarry binary is measured, and its docs are written")
	fs.StringVar(&o.nats, "nats", "nats-server", "the nats-server `binary`")
	fs.StringVar(&o.dir, "dir", "", "`directory` for data; the default is that for temporary files. One in memory makes every figure too good")
	fs.StringVar(&o.out, "o", "", "`file` for the results; the default is docs/benchmarks/peers.json of the repository, and its tables and plots are made too")
	fs.StringVar(&o.only, "only", "", "measure one `workload`: put, cycle, batch, late, one-consumer or pending; the other results are kept")
	fs.StringVar(&o.list, "systems", "", "measure these, a `list` with commas: tarry-http, tarry-beanstalkd, nats, beanstalkd, redis, redis-wait")
	fs.BoolVar(&o.pages, "pages", false, "measure nothing; make the tables and plots from the results")
	fs.BoolVar(&o.quick, "quick", false, "one short round, 10,000 pending jobs: under three minutes, to see that everything runs; its results are in .bin")
	fs.BoolVar(&o.full, "full", false, "five rounds of 10 s, a million pending jobs: an hour and a half")
	fs.IntVar(&o.Rounds, "rounds", 3, "how often each is measured")
	fs.DurationVar(&o.Duration, "duration", 1500*time.Millisecond, "`time` of a measurement; those of lateness take twice as long")
	fs.DurationVar(&o.Warmup, "warmup", 400*time.Millisecond, "`time` of load before it")
	fs.IntVar(&o.Pending, "pending", 100_000, "`jobs` for memory and disk; 0 leaves them out")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case o.quick && o.full:
		return nil, errors.New("-quick and -full exclude each other")
	case o.quick:
		o.settings = settings{1, 500 * time.Millisecond, 250 * time.Millisecond, 10_000}
	case o.full:
		o.settings = settings{5, 10 * time.Second, 2 * time.Second, 1_000_000}
	}
	if o.Rounds < 1 || o.Duration <= 0 || o.Warmup < 0 || o.Pending < 0 {
		return nil, fmt.Errorf("rounds is %d, duration %v, warmup %v and pending %d; none may be negative, and the first two not 0", o.Rounds, o.Duration, o.Warmup, o.Pending)
	}
	root, err := filepath.Abs(o.root)
	if err != nil {
		return nil, err
	}
	o.root, o.tarry = root, filepath.Join(root, "tarry")
	o.origin = strings.TrimSpace("make bench-peers " + argsOfMake(args))
	return o, nil
}

// argsOfMake is how the flags are given to make; those that make gives itself, and
// where files are, are left out.
func argsOfMake(args []string) string {
	var own []string
	for _, a := range args {
		if !slices.ContainsFunc([]string{"-nats=", "-root=", "-dir=", "-o="}, func(f string) bool { return strings.HasPrefix(a, f) }) {
			own = append(own, a)
		}
	}
	if len(own) == 0 {
		return ""
	}
	return "PEERS='" + strings.Join(own, " ") + "'"
}

func (o *options) systems() []system {
	all := []system{
		tarrySystem(o.tarry, false), tarrySystem(o.tarry, true), natsSystem(o.nats), beanstalkdSystem(), redisSystem(false), redisSystem(true),
	}
	if o.list == "" {
		return all
	}
	var some []system
	for _, s := range all {
		if strings.Contains(","+o.list+",", ","+s.key+",") {
			some = append(some, s)
		}
	}
	return some
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	file := o.out
	if file == "" {
		file = filepath.Join(o.root, "docs", "benchmarks", "peers.json")
	}
	if o.quick && o.out == "" { // too short to be kept
		o.out = filepath.Join(o.root, ".bin", "peers-quick.json")
		file = o.out
	}
	if o.pages {
		return writePages(o.root, file)
	}
	res, err := o.measure(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if o.only != "" && o.out == "" {
		all, err := readResults(file)
		if err != nil {
			return err
		}
		all.replace(res)
		res = all
	}
	if err := res.write(file); err != nil {
		return err
	}
	if o.out != "" {
		fmt.Print(res.tables())
		return nil
	}
	return writePages(o.root, file)
}

func (o *options) measure(ctx context.Context) (*results, error) {
	// Servers run in directories of their own.
	if strings.Contains(o.nats, "/") {
		path, err := filepath.Abs(o.nats)
		if err != nil {
			return nil, err
		}
		o.nats = path
	}
	res := &results{Machine: bench.Machine(), Date: time.Now().UTC().Format(time.DateOnly), Command: o.origin, Settings: o.settings, Skipped: map[string]string{}}
	if out, err := exec.CommandContext(ctx, "git", "-C", o.root, "describe", "--always", "--dirty").Output(); err == nil {
		res.Revision = strings.TrimSpace(string(out))
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		res.Load = strings.Join(strings.Fields(string(load))[:3], " ")
	}
	r := &runner{settings: o.settings, only: o.only, dir: o.dir, log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	for _, s := range o.systems() {
		version, err := s.version(ctx)
		if err != nil {
			res.Skipped[s.key] = err.Error()
			r.log.Warn("SKIPPED", "system", s.key, "reason", err)
			continue
		}
		res.Systems = append(res.Systems, systemResult{s.key, s.name, version, s.durable, s.command})
		r.systems = append(r.systems, s)
	}
	if len(r.systems) == 0 {
		return nil, errors.New("no system can be measured")
	}
	err := r.run(ctx)
	res.Points = r.points
	return res, err
}
