// Command pair measures two revisions of this repository in turns, so that what
// the machine does meanwhile hits both, and prints the medians side by side:
//
//	go run ./bench/pair [flags] OLD [NEW]
//
// NEW is HEAD when it is left out. Each revision is checked out and built in a
// temporary directory. Measured are the benchmarks of the state machine (ns a job,
// allocations an entry, and the processor time of a run, which other load on the
// machine disturbs least) and three nodes under `tarry bench`. With -new-args=--secure and
// HEAD twice it compares closed nodes with open ones. It takes about four
// minutes a round; run nothing else on the machine meanwhile.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

type config struct {
	rounds   int
	fsm      string // the state machine's benchmarks, comma-separated
	scenario string // comma-separated
	duration string
	newArgs  string // of tarry bench, for NEW alone
}

func main() {
	c := config{}
	flag.IntVar(&c.rounds, "rounds", 5, "measure each revision this many `times`")
	flag.StringVar(&c.fsm, "fsm", "Add:300x,Cycle:300x,DrainTopic:3x", "`benchmarks` of the state machine and how often each runs; empty: none")
	flag.StringVar(&c.scenario, "scenarios", "add-batch,add,cycle,delayed", "`names` of the scenarios of tarry bench; empty: none")
	flag.StringVar(&c.duration, "duration", "10s", "`time` of each of them")
	flag.StringVar(&c.newArgs, "new-args", "", "more `arguments` of tarry bench for NEW, separated by spaces, as in -new-args=--secure")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, c, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, c config, revisions []string, out io.Writer) (err error) {
	if len(revisions) == 1 {
		revisions = append(revisions, "HEAD")
	}
	if len(revisions) != 2 || c.rounds < 1 {
		return errors.New("usage: go run ./bench/pair [flags] OLD [NEW], with at least one round")
	}
	dir, err := os.MkdirTemp("", "tarry-pair-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var sides [2]*side
	for i, revision := range revisions {
		s, err := build(ctx, revision, filepath.Join(dir, [...]string{"old", "new"}[i]))
		if err != nil {
			return err
		}
		if i == 1 {
			s.args = strings.Fields(c.newArgs)
		}
		defer func() { err = errors.Join(err, s.remove()) }()
		sides[i] = s
	}
	found := newFigures()
	for round := range c.rounds {
		for turn := range sides {
			side := (turn + round) % 2 // A B, B A: a drift of the machine favours neither
			if err := sides[side].measure(ctx, c, func(name string, v float64) { found.add(side, name, v) }); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "round %d of %d: %s measured\n", round+1, c.rounds, sides[side].name())
		}
	}
	_, err = fmt.Fprintf(out, "medians of %d rounds in turns\n\n%s", c.rounds, found.table(sides[0].name(), sides[1].name()))
	return err
}

// side is one revision, checked out and built.
type side struct {
	commit string
	tree   string
	args   []string // more of tarry bench
}

func (s *side) name() string { return strings.Join(append([]string{s.commit}, s.args...), " ") }

func build(ctx context.Context, revision, dir string) (*side, error) {
	commit, err := output(ctx, ".", "git", "rev-parse", "--short", "--verify", revision+"^{commit}")
	if err != nil {
		return nil, err
	}
	s := &side{commit: strings.TrimSpace(commit), tree: dir}
	if _, err := output(ctx, ".", "git", "worktree", "add", "--quiet", "--detach", dir, s.commit); err != nil {
		return nil, err
	}
	_, err = output(ctx, dir, "go", "build", "-trimpath", "-o", "tarry.bench", "./cmd/tarry")
	if err == nil {
		_, err = output(ctx, dir, "go", "test", "-c", "-o", "fsm.bench", "./fsm")
	}
	if err != nil {
		return nil, errors.Join(err, s.remove())
	}
	return s, nil
}

func (s *side) remove() error {
	_, err := output(context.Background(), ".", "git", "worktree", "remove", "--force", s.tree)
	return err
}

// output runs a command and gives what it prints; an error has it too.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	out, _, err := timed(ctx, dir, name, args...)
	return out, err
}

// timed is output with the processor time of the command.
func timed(ctx context.Context, dir, name string, args ...string) (string, time.Duration, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", 0, fmt.Errorf("%s %s in %s: %w\n%s%s", name, strings.Join(args, " "), dir, err, out, problems.String())
	}
	return string(out), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}
