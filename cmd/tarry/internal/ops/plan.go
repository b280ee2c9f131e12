package ops

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tarry/cmd/tarry/internal/cli"
)

const planText = `Computes what the nodes of a cluster need: memory, disk, processors and network, from how
many jobs are pending at most, how many are added (and reserved, and finished) a second at
most, and how large their bodies are.

The results are computed from what was measured on one small machine (docs/capacity.md has
each figure with its source), so they are an order of magnitude and no promise. PROVIDE has
a reserve. Measure on your own machines with tarry bench before you buy many.`

// measured is a figure that a plan is computed from. docs/capacity.md has the same table.
type measured struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Source string  `json:"source"`
}

// What was measured. Figures of docs/benchmarks.md are those of its quiet runs.
var (
	memoryFull  = measured{"memory of a node with 100 million pending jobs", 425 << 20, "bytes", "docs/benchmarks-choices.md, memory with pending jobs: 425 MiB when 100 million were added. It is bounded by the memtables and the cache"}
	memoryUpTo  = measured{"pending jobs at which that was measured", 100e6, "jobs", "the same row; nothing larger was measured"}
	memoryMore  = measured{"memory of each further pending job", 2, "bytes", "docs/benchmarks-choices.md, memory with pending jobs: 9 million more took 17 MiB more"}
	diskJob     = measured{"disk of a pending job, without its body", 123, "bytes", "docs/benchmarks-choices.md, memory with pending jobs: 1,175 MiB with 10 million, whose bodies compress to nothing"}
	diskLog     = measured{"disk of the Raft log, at most", 2 << 30, "bytes", "cluster/trailing.go: what stays for followers that are behind"}
	diskBallast = measured{"disk of the ballast file", 128 << 20, "bytes", "cluster/diskspace: it is removed when the disk is almost full"}
	diskLowMost = measured{"free space under which adds are refused, at most", 2 << 30, "bytes", "docs/configuration.md, --disk-low-water auto: 5% of the disk, 512 MiB to 2 GiB"}
	logCycle    = measured{"log of an add, a reserve and a finish, without the body", 73, "bytes", "tarry bench --scenario cycle --size 1000: 3 × tarry_batch_bytes_sum / tarry_batch_operations_sum - 1000"}
	logCopies   = measured{"times that a node writes what it logs, at least", 3, "times", "docs/benchmarks-choices.md, the log's sync: twice in the log, once as zeros; then the state's table. Compactions come on top"}
	cpuCycle    = measured{"processor time of an add, a reserve and a finish, three nodes together", 367, "us", "docs/benchmarks.md, add, reserve, finish one by one: 1.37 cores at 3,734 cycles/s"}
	mostCycles  = measured{"cycles a second that were reached", 3734, "1/s", "the same row: three nodes and the load generator on two cores"}
)

// measurements are all of them, in the order of docs/capacity.md.
var measurements = []measured{memoryFull, memoryUpTo, memoryMore, diskJob, diskLog, diskBallast, diskLowMost, logCycle, logCopies, cpuCycle, mostCycles}

// load is what a cluster is planned for.
type load struct {
	Jobs  uint64  `json:"jobs"`       // pending at most
	Rate  float64 `json:"rate"`       // jobs added, reserved and finished a second at most
	Body  uint64  `json:"body_bytes"` // on average
	Nodes int     `json:"nodes"`
}

// need is what one node takes.
type need struct {
	Memory  float64 `json:"memory_bytes"`
	Disk    float64 `json:"disk_bytes"`
	Writes  float64 `json:"disk_bytes_per_second"`
	Cores   float64 `json:"cores"`
	Network float64 `json:"network_bytes_per_second"` // of the leader, to the other nodes
}

// capacity is a plan.
type capacity struct {
	For      load       `json:"for"`
	Estimate need       `json:"each_node_estimate"`
	Provide  need       `json:"each_node_provide"`
	Warnings []string   `json:"warnings"`
	From     []measured `json:"measured"`
}

// reserve is how much more than the estimate a plan provides: a node that restarts catches up
// beside the load, and one of three takes what another one leaves.
const reserve = 2

// planFor computes a plan. The leader does most of the work and any node may lead, so each node
// gets the processors that all of them together use on the machine that was measured.
func planFor(l load) capacity {
	jobs, body := float64(l.Jobs), float64(l.Body)
	logged := l.Rate * (body + logCycle.Value)
	e := need{
		Memory:  memoryFull.Value + max(0, jobs-memoryUpTo.Value)*memoryMore.Value,
		Disk:    jobs*(diskJob.Value+body) + diskLog.Value + diskBallast.Value,
		Writes:  logged * logCopies.Value,
		Cores:   l.Rate * cpuCycle.Value / 1e6 * float64(l.Nodes) / 3,
		Network: logged * float64(l.Nodes-1),
	}
	c := capacity{For: l, Estimate: e, From: measurements, Warnings: []string{}, Provide: need{
		Memory:  roundUp(e.Memory*reserve, 1<<30),
		Disk:    roundUp(e.Disk*reserve+diskLowMost.Value, 10<<30),
		Writes:  roundUp(e.Writes*reserve, 10e6),
		Cores:   max(2, math.Ceil(e.Cores)),
		Network: roundUp(e.Network*reserve, 1e6),
	}}
	warn := func(format string, args ...any) { c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...)) }
	if jobs > memoryUpTo.Value {
		warn("memory and disk are computed from a measurement with %s pending jobs; nothing larger was measured", cli.Count(uint64(memoryUpTo.Value)))
	}
	if l.Rate > mostCycles.Value {
		warn("%s jobs a second are more than the %s that were reached on two cores; measure on your machines: tarry bench --scenario cycle", decimal(l.Rate), decimal(mostCycles.Value))
	}
	if l.Nodes == 1 {
		warn("one node keeps no job when its disk is lost")
	}
	if l.Nodes != 3 {
		warn("processor time was measured with three nodes and is taken in proportion")
	}
	return c
}

func roundUp(v, to float64) float64 { return math.Ceil(v/to) * to }

// decimal writes a number without an exponent.
func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func PlanCommand() *cobra.Command {
	c := cli.NewLocal("plan", "compute the memory, disk and processors that a load needs", "", planText, "tarry plan --jobs 50M --rate 2k --body 1k")
	jobs, rate, body := quantity(1_000_000), quantity(100), quantity(200)
	nodes := 3
	c.Flags.Var(&jobs, "jobs", "`number` of jobs that are pending at most, such as 50M")
	c.Flags.Var(&rate, "rate", "`number` of jobs that are added, reserved and finished a second at most, such as 2k")
	c.Flags.Var(&body, "body", "`bytes` of a body on average, such as 1k or 2Ki")
	c.Flags.IntVar(&nodes, "nodes", 3, "`number` of nodes that vote: 1, 3, 5 or 7")
	return c.Does(func(_ context.Context, _ []string) error {
		switch {
		case nodes != 1 && nodes != 3 && nodes != 5 && nodes != 7:
			return cli.Usagef("--nodes: must be 1, 3, 5 or 7, got %d", nodes)
		case jobs > 1e12 || rate > 1e7:
			return cli.Usagef("--jobs and --rate: must be at most 1000G and 10M, got %v and %v", &jobs, &rate)
		case body > maxBodyPlanned:
			return cli.Usagef("--body: must be at most %d, got %v", maxBodyPlanned, &body)
		}
		p := planFor(load{Jobs: uint64(jobs), Rate: float64(rate), Body: uint64(body), Nodes: nodes})
		if c.JSON {
			return c.PrintJSON(p)
		}
		return p.print(c.Out)
	})
}

// maxBodyPlanned is the largest body that --max-body-bytes allows.
const maxBodyPlanned = 4 << 20

func (p capacity) print(out cli.Printer) error {
	e, m := p.Estimate, p.Provide
	rows := [][2]string{
		{"memory", fmt.Sprintf("%-14s %s", cli.ByteSize(int64(e.Memory)), cli.ByteSize(int64(m.Memory)))},
		{"disk", fmt.Sprintf("%-14s %s", cli.ByteSize(int64(e.Disk)), cli.ByteSize(int64(m.Disk)))},
		{"disk writes", fmt.Sprintf("%-14s %s", cli.ByteSize(int64(e.Writes))+"/s", cli.ByteSize(int64(m.Writes))+"/s")},
		{"processors", fmt.Sprintf("%-14.1f %.0f", e.Cores, m.Cores)},
		{"to nodes", fmt.Sprintf("%-14s %s", cli.ByteSize(int64(e.Network))+"/s", cli.ByteSize(int64(m.Network))+"/s")},
	}
	text := fmt.Sprintf("%d nodes for %s pending jobs with bodies of %d bytes, and %s a second added and finished\n\n%-14s %-14s %s\n",
		p.For.Nodes, cli.Count(p.For.Jobs), p.For.Body, decimal(p.For.Rate), "EACH NODE", "ESTIMATE", "PROVIDE")
	for _, r := range rows {
		text += fmt.Sprintf("%-14s %s\n", r[0], r[1])
	}
	text += "\nIf bodies compress, the disk needs less. Sync time of the disk matters more than its bandwidth: under 1 ms.\n"
	for _, w := range p.Warnings {
		text += "note: " + w + "\n"
	}
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if err := out.Line("%s", line); err != nil {
			return err
		}
	}
	return nil
}

// quantity is a number of things with a unit: k, M, G, or Ki, Mi, Gi for powers of 1024.
type quantity float64

var quantityUnits = []struct {
	suffix string
	times  float64
}{{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"", 1}}

// Set implements pflag.Value.
func (q *quantity) Set(text string) error {
	for _, u := range quantityUnits {
		number, found := strings.CutSuffix(text, u.suffix)
		if !found {
			continue
		}
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || v < 0 || math.IsInf(v, 0) || math.IsNaN(v) || strings.ContainsAny(number, "xXpP_") {
			break
		}
		*q = quantity(v * u.times)
		return nil
	}
	return fmt.Errorf("must be a number such as 1500, 2k, 50M or 1.5G, or 4Ki, Mi, Gi for powers of 1024")
}

func (q *quantity) String() string { return decimal(float64(*q)) }

// Type implements pflag.Value.
func (*quantity) Type() string { return "number" }
