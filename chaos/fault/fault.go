package fault

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"tarry/bench/localcluster"
	"tarry/chaos/disk"
	"tarry/chaos/network"
)

// Fault is one way to break a cluster.
type Fault struct {
	Name   string // lower case with hyphens, for --faults
	Needs  Needs
	Weight int // how often it is drawn, relative to the others; 0 is only drawn by name
	// Overlaps reports whether the fault only affects nodes that it has claimed, and no
	// node loses its data. Only such faults run concurrently.
	Overlaps bool
	// Run injects the fault, holds it and heals it before it returns, also if ctx ends. An
	// error is a failure of the harness. Run reports failures of the server by Env.Violate.
	Run func(ctx context.Context, e *Env) error
}

// Needs is a set of things that the machine, the binary or the cluster must offer.
type Needs uint

// What a fault may need.
const (
	Namespaces  Needs = 1 << iota // the nodes run in network namespaces; Env.Network is set
	FaultyDisk                    // the nodes' data is on a faulty file system; Env.Disks is set
	HookBinary                    // the binary was built with -tags chaos
	Root                          // the harness runs as root
	Strace                        // strace is installed and may trace
	Cgroup                        // CPU cgroups can be created
	FiveNodes                     // the cluster has five nodes or more
	NextRelease                   // Env.Next is set
	OpenNodes                     // nodes talk to each other in plain text
)

var needNames = []string{"namespaces", "faulty-disk", "hook-binary", "root", "strace", "cgroup", "five-nodes", "next-release", "open-nodes"}

// Has reports whether n includes all of what.
func (n Needs) Has(what Needs) bool { return n&what == what }

// Lacks returns the needs of n that have does not include.
func (n Needs) Lacks(have Needs) Needs { return n &^ have }

func (n Needs) String() string {
	var names []string
	for i, name := range needNames {
		if n&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// Env is the environment of one injection of a fault. It belongs to one goroutine; only
// what it points to is shared with concurrent injections.
type Env struct {
	Cluster *localcluster.Cluster
	Rand    *rand.Rand // of this injection alone, so that a seed repeats its choices
	Log     *slog.Logger
	Dir     string // an empty directory for this injection; the runner removes it
	// Hold draws how long the fault should last, from tenths of a second to tens of
	// seconds.
	Hold func() time.Duration
	// Violate records that the server violated an invariant, "I1" to "I13", or did not do
	// what this fault requires ("fault"). The run then ends.
	Violate func(invariant, format string, args ...any)
	// Healed records when the fault was healed, to measure the time from then to the next
	// acknowledged write. Return calls it. Without a call it is the end of Run.
	Healed func()
	// Skew records that a node's clock is off by up to by, from now to the end of Run, so
	// that the judge tolerates it.
	Skew func(by time.Duration)
	// Stall records that a node stands still between now and the end of Run, so that the judge
	// expects late replies.
	Stall func()
	// Count adds to a counter of the report, such as the number of refusals.
	Count   func(figure string, n int)
	Claimed *ClaimedNodes // the nodes that injections work on

	Next    string           // a server of the release after the nodes' own (job/next.go)
	Network *network.Network // the connections between the nodes; nil on loopback
	Disks   *disk.Disks      // under the nodes' data; nil without FaultyDisk
}

// healing bounds the time that the server may take to recover. It is far above what is
// needed, because durations are measured and not judged here.
const healing = 90 * time.Second

// Healing returns a context for the steps after the fault. The end of the run does not
// cancel it, so that every fault is healed.
func Healing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), healing)
}

// until calls done repeatedly until it is true. It returns false if ctx or the time ends
// first.
func until(ctx context.Context, limit time.Duration, done func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return localcluster.Until(ctx, func() error {
		if !done() {
			return errors.New("not yet")
		}
		return nil
	}) == nil
}

// Between draws a duration in [low, high).
func (e *Env) Between(low, high time.Duration) time.Duration {
	return low + time.Duration(e.Rand.Int64N(int64(high-low)))
}

// Return starts the nodes that are not running, in the given order, and waits until all are
// ready. A node that does not become ready violates I6.
func (e *Env) Return(ctx context.Context, nodes ...*localcluster.Node) error {
	ctx, cancel := Healing(ctx)
	defer cancel()
	for _, n := range nodes {
		if n.Running() {
			continue
		}
		if err := n.Start(); err != nil {
			return err
		}
	}
	e.Healed()
	if err := e.Cluster.WaitReady(ctx, nodes...); err != nil {
		e.Violate("I6", "after a fault was healed: %v", err)
	}
	return nil
}

// Names lists nodes for a log line.
func Names(nodes []*localcluster.Node) string {
	ids := make([]string, len(nodes))
	for i, n := range nodes {
		ids[i] = n.ID
	}
	return fmt.Sprint(ids)
}
