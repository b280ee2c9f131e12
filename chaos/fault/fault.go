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
	// Overlaps says that the fault touches no nodes but those it took from Env,
	// and costs no node its data. Only such faults run beside each other.
	Overlaps bool
	// Run injects the fault, holds it and heals it before it returns, also when
	// ctx ends meanwhile. Its error means that the harness failed; what the
	// server did wrong goes to Env.Violate.
	Run func(ctx context.Context, e *Env) error
}

// Needs is a set of things that the machine, the binary or the cluster must offer.
type Needs uint

// What a fault may need.
const (
	Namespaces  Needs = 1 << iota // the nodes live in network namespaces; Env.Network is there
	FaultyDisk                    // the nodes' data lies on a faulty file system; Env.Disks is there
	HookBinary                    // the binary was built with -tags chaos
	Root                          // the harness runs as root
	Strace                        // strace is installed and may trace
	Cgroup                        // cgroups of the CPU can be made
	FiveNodes                     // the cluster has five nodes or more
	NextRelease                   // Env.Next is there
)

var needNames = []string{"namespaces", "faulty-disk", "hook-binary", "root", "strace", "cgroup", "five-nodes", "next-release"}

// Has reports whether n holds all of what.
func (n Needs) Has(what Needs) bool { return n&what == what }

// Lacks is what n asks for and have does not hold.
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

// Env is what one injection of a fault works with. It belongs to one goroutine;
// only what it points to is shared with the injections beside it.
type Env struct {
	Cluster *localcluster.Cluster
	Rand    *rand.Rand // of this injection alone, so that a seed repeats its choices
	Log     *slog.Logger
	Dir     string // an empty directory for this injection; the runner removes it
	// Hold draws how long the fault should last, from tenths of a second to some
	// ten seconds.
	Hold func() time.Duration
	// Violate records that the server broke a promise, named "I1" to "I13", or
	// "fault" when it did not do what this fault demands. The run then ends.
	Violate func(invariant, format string, args ...any)
	// Healed notes the instant at which the fault was lifted, so that the time
	// from there to the next acknowledged write is measured. Return calls it;
	// without a call it is the end of Run.
	Healed func()
	// Skew says that from now to the end of Run a node's clock is off by as much as
	// by, so that the judge allows for it.
	Skew func(by time.Duration)
	// Count adds to a figure of the report, such as refusals seen.
	Count   func(figure string, n int)
	Claimed *ClaimedNodes // the nodes that injections work on

	Next    string           // a server that stands for the release after the nodes' own (job/next.go)
	Network *network.Network // the lines between the nodes; nil on loopback
	Disks   *disk.Disks      // under the nodes' data; nil without FaultyDisk
}

// healing bounds what a heal may take before the server has failed it. It is far
// above what is needed: how long things take is measured, not judged here.
const healing = 90 * time.Second

// Healing is a context for the steps after the fault: the end of the run does not
// interrupt it, so that every fault is healed.
func Healing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), healing)
}

// until asks done again and again; false when ctx or the time ended first.
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

// Return starts the nodes that are not running, in the order given, and waits
// until all are ready. A node that does not get ready breaks I6.
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
