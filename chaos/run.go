package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"tarry/bench/localcluster"
	"tarry/chaos/fault"
	"tarry/chaos/history"
	"tarry/chaos/workload"
)

// config is what the command line says.
type config struct {
	duration    time.Duration
	seed        uint64
	faults      string // names with commas; empty: the whole mix; none: no faults
	logStores   string // names with commas, which the nodes take in turn; empty: the server's default
	trailing    int    // entries of the Raft log kept behind a snapshot; 0: as many as the server likes
	mutant      string // a defect of the server to switch on, which the judge must find
	binary      string // empty: build one
	next        string // of the next release; built with the other
	dir         string // empty: a temporary one
	keep        bool   // the history also when nothing was found
	nodes       int
	tokens      bool   // the cluster checks clients' tokens
	secure      bool   // the nodes speak TLS with each other and encrypt gossip, with keys that are replaced
	recoverFrom string // backup, standby or replace: what serves after the loss of the cluster at the end; empty: it is not lost
	network     string // auto, loopback or namespaces
	json        bool
	drain       time.Duration // longest time for the drain and the comparison of states
	maxGap      time.Duration // longest accepted time without a write after a heal
}

// clockBound is how far clocks may be apart: all are one machine's, so it covers
// rounding to milliseconds and the drift of a wall clock under correction against
// the recorder's steady one.
const clockBound = 5 * time.Millisecond

// Limits of the parts of a run that are not its load. They are far above what is
// needed and end a run that is stuck.
const (
	buildLimit = 5 * time.Minute
	startLimit = 90 * time.Second
)

// run is one run from the build to the verdict.
type run struct {
	config
	log         *slog.Logger
	environment *environment
	cluster     *localcluster.Cluster
	serving     *localcluster.Cluster // the cluster; or, at the end, its successor
	successor   successor             // nil if the cluster is not lost
	rotation    *rotation             // nil unless secure
	inject      *injector
	load        workload.Config
	report      *report
}

// execute makes a run and reports on it. An error means that the harness failed
// and there is no verdict.
func execute(ctx context.Context, c config, log *slog.Logger) (*report, error) {
	r := &run{config: c, log: log, report: &report{Seed: c.seed, Nodes: c.nodes, Mutant: c.mutant, Dir: c.dir, Again: c.again()}}
	if err := r.build(ctx); err != nil {
		return nil, err
	}
	var err error
	if r.environment, err = newEnvironment(ctx, r.config, log); err != nil {
		return nil, err
	}
	err = r.inEnvironment(ctx)
	return r.report, errors.Join(err, r.environment.close())
}

// build makes a binary with the hooks that faults and mutants use, and one that stands
// for the next release.
func (r *run) build(ctx context.Context) error {
	if r.binary != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	r.binary, r.next = filepath.Join(r.dir, "tarry"), filepath.Join(r.dir, "tarry-next")
	for path, tags := range map[string]string{r.binary: "chaos", r.next: "chaos,next"} {
		cmd := exec.CommandContext(ctx, "go", "build", "-race=false", "-tags", tags, "-o", path, "tarry/cmd/tarry")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build the server: %w\n%s", err, out)
		}
	}
	return nil
}

// inEnvironment runs where the nodes have their place.
func (r *run) inEnvironment(ctx context.Context) (err error) {
	if r.mutant != "" && !r.environment.have.Has(fault.HookBinary) {
		return errors.New("--mutant needs a server that was built with -tags chaos")
	}
	faults, lacking, err := pick(catalogue(), r.faults, r.environment.have)
	if err != nil {
		return err
	}
	r.report.Lacking = lacking
	posts, err := r.environment.listen()
	if err != nil {
		return err
	}
	defer posts.Close()
	r.cluster, err = localcluster.New(r.environment.options(localcluster.Options{
		Binary: r.binary, Dir: r.dir, Nodes: r.nodes, Env: r.hooks(), Args: []string{"--push-allow", posts.Addr().String()},
		SecureNodes: r.secure,
	}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.cluster.Stop()) }()
	r.serving = r.cluster
	if r.successor, err = newSuccessor(r, posts.Addr().String()); err != nil {
		return err
	}
	if r.successor != nil {
		defer func() { err = errors.Join(err, r.successor.stop()) }()
	}
	if err := r.start(ctx); err != nil {
		return err
	}
	recorder := history.NewRecorder()
	r.load = loadOf(r.cluster, recorder, r.seed)
	if r.tokens {
		if err := r.checkTokens(ctx); err != nil {
			return err
		}
		r.load.TokenHolders = tokenHolders
	}
	r.load.Target = workload.NewTarget(posts, recorder, targetNumber, r.seed)
	defer func() { err = errors.Join(err, r.load.Target.Close()) }()
	if err := r.prepare(ctx); err != nil {
		return err
	}
	r.inject = &injector{
		cluster: r.cluster, schedule: newSchedule(r.seed, faults), recorder: recorder, log: r.log, dir: r.dir,
		prepare: r.environment.prepare, claimed: fault.NewClaimedNodes(), counts: map[string]int{}, figures: map[string]int{},
	}
	if r.successor != nil {
		if err := r.successor.begin(ctx); err != nil {
			return fmt.Errorf("prepare what the cluster is recovered from: %w", err)
		}
	}
	from := recorder.Now()
	if err := r.followed(ctx, func() error { return r.loadAndInject(ctx) }); err != nil {
		return err
	}
	to := recorder.Now()
	r.finish(ctx)
	if err := r.load.Target.Close(); err != nil { // the history is whole
		return err
	}
	return r.judge(ctx, from, to)
}

func (r *run) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if r.logStores != "" {
		stores := strings.Split(r.logStores, ",")
		for i, n := range r.cluster.Nodes() {
			n.Setenv("TARRY_LOG_STORE", stores[i%len(stores)])
		}
	}
	if err := r.cluster.Start(); err != nil {
		return err
	}
	if err := r.cluster.WaitReady(ctx, r.cluster.Nodes()...); err != nil {
		return err
	}
	if err := r.awaitVersion(ctx); err != nil || !r.secure {
		return err
	}
	var err error
	r.rotation, err = newRotation(ctx, r.cluster)
	return err
}

// awaitVersion waits until the cluster has the version that its nodes run: before that a delay may
// be shorter than asked for by less than a millisecond.
func (r *run) awaitVersion(ctx context.Context) error {
	return localcluster.Until(ctx, func() error {
		members, err := r.cluster.Members(ctx, r.cluster.Nodes()[0])
		for _, m := range members {
			if m.ClusterVersion < m.MaxVersion {
				err = fmt.Errorf("node %s has cluster version %d, and runs %d", m.ID, m.ClusterVersion, m.MaxVersion)
			}
		}
		return err
	})
}

// prepare makes the cluster ready for the load.
func (r *run) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return workload.Prepare(ctx, r.load)
}

// hooks is what the run wants of a server that has hooks.
func (r *run) hooks() []string {
	if !r.environment.have.Has(fault.HookBinary) {
		return nil
	}
	env := []string{"TARRY_HOOK_MUTANT=" + r.mutant}
	if r.trailing > 0 {
		env = append(env, "TARRY_HOOK_TRAILING="+strconv.Itoa(r.trailing))
	}
	return env
}

// loadAndInject lasts for the run's duration, or until a fault finds a broken
// promise, and leaves the cluster healed and without load.
func (r *run) loadAndInject(ctx context.Context) error {
	loading, stop := context.WithCancel(ctx)
	var load sync.WaitGroup
	load.Go(func() { workload.Run(loading, r.load) })
	defer load.Wait()
	defer stop()
	limited, cancel := context.WithTimeout(ctx, r.duration)
	defer cancel()
	begin := time.Now()
	err := r.inject.run(limited)
	r.report.Seconds = time.Since(begin).Seconds()
	return err
}

// finish drains the cluster and compares the nodes' states.
func (r *run) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.drain)
	defer cancel()
	if r.rotation != nil {
		if err := r.rotation.finish(ctx); err != nil {
			r.report.Violate("keys", "", "without a fault, after %d rotations: %v", r.rotation.rounds, err)
		}
		r.inject.figures["rotations"] = r.rotation.rounds
	}
	if r.successor != nil {
		r.inject.disturb()
		err := r.replace(ctx)
		r.report.From, r.report.How = r.recoverFrom, r.successor.summary()
		if errors.Is(err, errBroken) {
			r.report.Violate(r.recoverFrom, "", "%v", err)
			return
		}
		if err != nil {
			r.report.undecided("the cluster was not recovered: %v", err)
			return
		}
	}
	r.log.Info("draining")
	if err := workload.Drain(ctx, r.load); err != nil {
		r.report.undecided("the drain did not end: %v", err)
		return
	}
	r.report.verify(verifyStates(ctx, r.serving))
}

// judge checks the history and fills the report in.
func (r *run) judge(_ context.Context, from, to int64) error {
	rep, in := r.report, r.inject
	ops := r.load.Recorder.Ops()
	rep.Faults, rep.Figures, rep.Skipped = in.counts, in.figures, in.skipped
	rep.found(in.violations)
	var err error
	if rep.Failovers, err = failovers(r.dir); err != nil {
		return err
	}
	r.log.Info("judging", "operations", len(ops))
	rep.check(ops, history.Options{ClockBound: clockBound, Skews: in.skews, Stalls: in.stalls, From: from, To: to, Quiet: in.quiet, MaxQuietGap: r.maxGap})
	if rep.Verdict() == noViolation && !r.keep {
		return nil
	}
	rep.HistoryFile = filepath.Join(r.dir, historyFile)
	return history.WriteFile(rep.HistoryFile, ops)
}

// targetNumber is the target's number in the history, above those of clients.
const targetNumber = 1000

// historyFile is the name of a run's history in its directory.
const historyFile = "history.jsonl"

// loadOf is the mix of clients.
func loadOf(c *localcluster.Cluster, recorder *history.Recorder, seed uint64) workload.Config {
	return workload.Config{
		Nodes:    nodesOf(c),
		Recorder: recorder, Topics: []string{"mail", "bills", "thumbnails"}, Tubes: []string{"parcels", "letters"}, Awaited: "alarms", Edited: []string{"drafts", "orders"},
		Limited: map[string]history.Limits{
			"imports": {Pending: 15, Reserved: 3}, "calls": {Pending: 12, Rate: 20, Burst: 3}, "receipts": {Retain: 3600},
			"codes": {Expire: 500 * time.Millisecond, Expiry: "drop"}, "offers": {Expire: 500 * time.Millisecond, Expiry: "dead"},
			"reports": {Spread: time.Second}, "payments": {RefuseLate: true, Tokens: true},
		},
		Tenants:   map[string]history.Limits{"tenants.": {Jobs: 20}, "meters.": {AddRate: 5}},
		Scheduled: "runs",
		Pushed:    map[string]history.Limits{workload.OwnURLs: {Push: true, Retain: 3600}, "webhooks": {Push: true, Retain: 3600, Reserved: 3}},
		Producers: 4, BulkProducers: 3, Importers: 1, Consumers: 5, Streamers: 3, Patient: 3, Readers: 2, Pinned: 48, Editors: 4, Movers: 1, Limiteds: 5, TenantLoads: 3, Pausers: 1, PushProducers: 2, TubeProducers: 2, TubeConsumers: 10,
		Think: 25 * time.Millisecond, Seed: seed, Name: fmt.Sprintf("s%d", seed),
	}
}

// nodesOf returns the nodes of a cluster as clients know them.
func nodesOf(c *localcluster.Cluster) func() []workload.Node {
	return func() (nodes []workload.Node) {
		for _, n := range c.Nodes() {
			nodes = append(nodes, workload.Node{HTTP: n.HTTP, Beanstalk: n.Beanstalk})
		}
		return nodes
	}
}
