package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tarry/bench"
	"tarry/cmd/tarry/internal/cli"
)

const benchText = `Measures throughput, latency, lateness, failover and restart times. With --start
it runs its own nodes from this binary in a temporary directory and removes them
at the end; without, it loads the nodes at --addr, and jobs that it adds stay
there (topics bench-0, bench-1, ...; tubes bench-add-0, bench-cycle-0, ...).

With --protocol beanstalkd it speaks as a client of beanstalkd, so --addr may also
name a real beanstalkd, and --server starts one to compare with.

Scenarios:
  add-batch  add --batch jobs a request, due in an hour
  add        add one job a request, due in an hour
  cycle      add, reserve and finish one job, one request each
  work       add a job; then finish the last one and reserve the next in one request
  delayed    --rate jobs a second fall due while consumers wait for them
  worker     as delayed, for one consumer that takes one job at a time and finishes it
             with the reserve of the next; with --credit it takes them from a stream
  tenants    cycles of one tenant at --rate, alone and then beside another one at ten times
             its rate and connections; it makes two namespaces, and removes them
  failover   kill -9 the leader --rounds times; time to the next acknowledged write
  handover   SIGTERM the leader --rounds times; longest time without an acknowledged
             write, which clients of the other nodes send all the while
  pending    --jobs delayed jobs on one node; memory, disk and restart time
Over beanstalkd:
  add        put jobs that are ready at once, --pipeline of them before answers are read
  cycle      put, reserve and delete one job
  delayed    as above; lateness counts from the moment the put was sent
  worker     as delayed, for one consumer that reserves and deletes one job at a time`

const benchExample = `  tarry bench --start 3 --scenario add-batch --connections 16
  tarry bench --addr n1:7300,n2:7300,n3:7300 --scenario delayed --rate 500
  tarry bench --start 3 --target leader
  tarry bench --start 3 --secure
  tarry bench --all
  tarry bench --start 3 --protocol beanstalkd --scenario add --pipeline 32
  tarry bench --start 1 --server beanstalkd-fsync --protocol beanstalkd --scenario add
  tarry bench --all --protocol beanstalkd`

// benchFlags is the command line of tarry bench.
type benchFlags struct {
	config bench.Config
	addr   string
	start  int
	dir    string
	all    bool
	json   bool
	given  map[string]bool
}

// benchOf reads the flags again: the defaults depend on the scenario and the protocol,
// which the first reading has found.
func benchOf(first *benchFlags, line *pflag.FlagSet) (*benchFlags, error) {
	f := &benchFlags{config: bench.Defaults(first.config.Scenario, first.config.Protocol), given: map[string]bool{}}
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.register(fs)
	line.Visit(func(g *pflag.Flag) {
		f.given[g.Name] = true
		_ = fs.Set(g.Name, g.Value.String()) // the first reading took it
	})
	switch {
	case f.given["addr"] && (f.given["start"] || f.all):
		return nil, errors.New("--addr loads nodes that run already, --start and --all run their own; give one")
	case f.start < 0 || f.start > 9:
		return nil, fmt.Errorf("--start is %d; it must be between 1 and 9", f.start)
	case f.config.Protocol != bench.HTTP && f.config.Protocol != bench.Beanstalkd:
		return nil, fmt.Errorf("--protocol is %q; it must be %s or %s", f.config.Protocol, bench.HTTP, bench.Beanstalkd)
	case f.given["server"] && (f.all || f.start == 0):
		return nil, errors.New("--server says what --start starts; give both, and not --all")
	case f.given["target"] && f.start == 0:
		return nil, errors.New("--target chooses among the nodes of --start; with --addr name the nodes to load")
	case f.config.Secure && f.start == 0 && !f.all:
		return nil, errors.New("--secure closes the nodes of --start or --all; give one of them")
	}
	f.config.Addrs = strings.Split(f.addr, ",")
	return f, nil
}

func (f *benchFlags) register(fs *pflag.FlagSet) {
	c := &f.config
	fs.StringVar(&f.addr, "addr", strings.Join(c.Addrs, ","), "addresses of the nodes to load, for the protocol, `host:port,...`; 127.0.0.1:11300 with --protocol beanstalkd")
	fs.IntVar(&f.start, "start", 0, "start this `number` of nodes instead")
	fs.StringVar(&f.dir, "dir", "", "`directory` for the data of the started nodes; default: the system's for temporary files")
	fs.BoolVar(&f.all, "all", false, "measure every row of docs/benchmarks.md, each on new nodes, and print the table")
	fs.BoolVar(&f.json, "json", false, "print results as JSON, one per line")
	fs.StringVar((*string)(&c.Scenario), "scenario", string(c.Scenario), "`name` of what to measure, see above")
	fs.StringVar((*string)(&c.Protocol), "protocol", string(c.Protocol), "`http` or beanstalkd")
	fs.StringVar((*string)(&c.Server), "server", string(c.Server), "what --start starts: `tarry`; or a real one, beanstalkd (in memory) or beanstalkd-fsync (binlog, synced at every write)")
	fs.StringVar((*string)(&c.Target), "target", string(c.Target), "where connections to the nodes of --start lead: `any` node, in turn, or the leader")
	fs.BoolVar(&c.Secure, "secure", c.Secure, "close the nodes of --start: TLS between them and with clients, encrypted gossip, tokens enforced")
	fs.IntVar(&c.Pipeline, "pipeline", c.Pipeline, "`puts` that a connection sends before it reads replies (scenario add over beanstalkd)")
	fs.IntVar(&c.Connections, "connections", c.Connections, "`number` of connections, each with one request at a time")
	fs.IntVar(&c.Batch, "batch", c.Batch, "`jobs` of one batch request")
	fs.IntVar(&c.Size, "size", c.Size, "`bytes` of a job's body")
	fs.IntVar(&c.Topics, "topics", c.Topics, "`number` of topics")
	fs.BoolVar(&c.IDs, "ids", c.IDs, "give jobs ids of their own")
	fs.DurationVar(&c.Duration, "duration", c.Duration, "`time` to measure")
	fs.DurationVar(&c.Warmup, "warmup", c.Warmup, "`time` of load before that")
	fs.Float64Var(&c.Rate, "rate", c.Rate, "`jobs` per second (scenarios delayed and worker), or cycles (scenario tenants)")
	fs.DurationVar(&c.Delay, "delay", c.Delay, "delay of each job, a `time` (scenarios delayed and worker)")
	fs.IntVar(&c.Credit, "credit", c.Credit, "`jobs` that a stream holds for the consumer, which then need not reserve each (scenario worker over http)")
	fs.IntVar(&c.Rounds, "rounds", c.Rounds, "`times` the leader is stopped (scenarios failover and handover)")
	fs.IntVar(&c.Jobs, "jobs", c.Jobs, "`number` of delayed jobs (scenario pending)")
}

// BenchCommand measures and prints what it found.
func BenchCommand() *cobra.Command {
	first := &benchFlags{config: bench.Defaults(bench.Add, bench.HTTP)}
	cmd := &cobra.Command{
		Use: "bench", Short: "measure throughput, latency, lateness and failover",
		Long: benchText, Example: benchExample, Args: cli.FlagsOnly,
	}
	first.register(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f, err := benchOf(first, cmd.Flags())
		if err != nil {
			return cli.UsageError{Err: err}
		}
		// The nodes that were started must not outlive us.
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return f.run(ctx, cmd.OutOrStdout(), slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
	}
	return cmd
}

func (f *benchFlags) run(ctx context.Context, stdout io.Writer, log *slog.Logger) error {
	if f.all {
		return f.table(ctx, stdout, log)
	}
	var res *bench.Result
	var err error
	if f.start > 0 {
		var binary string
		if binary, err = os.Executable(); err != nil {
			return fmt.Errorf("find our own binary: %w", err)
		}
		res, err = bench.Local(ctx, f.config, f.start, binary, f.dir, log)
	} else {
		f.config.Logger = log
		res, err = bench.Run(ctx, f.config)
	}
	if err != nil {
		return err
	}
	return f.print(stdout, res)
}

func (f *benchFlags) print(w io.Writer, res *bench.Result) error {
	if f.json {
		return json.NewEncoder(w).Encode(res)
	}
	return res.Print(w)
}

// table measures every row, each on a cluster of its own, and prints the table
// at the end.
func (f *benchFlags) table(ctx context.Context, stdout io.Writer, log *slog.Logger) error {
	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find our own binary: %w", err)
	}
	table := "Measured on " + bench.Machine() + ".\n\n" + bench.TableHead
	for _, row := range f.rows(log) {
		c := f.override(row.Config)
		log.Info("measuring", "row", row.What, "nodes", row.Nodes)
		res, err := bench.Local(ctx, c, row.Nodes, binary, f.dir, log)
		if err != nil {
			return fmt.Errorf("%s: %w", row.What, err)
		}
		if err := f.print(stdout, res); err != nil {
			return err
		}
		table += res.Row(row.What)
	}
	if f.json {
		return nil
	}
	_, err = fmt.Fprintf(stdout, "\n%s", table)
	return err
}

// rows are those of the protocol.
func (f *benchFlags) rows(log *slog.Logger) []bench.Row {
	if f.config.Protocol != bench.Beanstalkd {
		return bench.Rows()
	}
	withReal := bench.HaveBeanstalkd()
	if !withReal {
		log.Warn("no beanstalkd is installed, so nothing is compared with it")
	}
	return bench.BeanstalkdRows(withReal)
}

// override lets flags that were given shorten or lengthen every row.
func (f *benchFlags) override(c bench.Config) bench.Config {
	g := f.config
	for name, set := range map[string]func(){
		"secure":   func() { c.Secure = g.Secure && c.Server == bench.Tarry },
		"size":     func() { c.Size = g.Size },
		"ids":      func() { c.IDs = g.IDs },
		"duration": func() { c.Duration = g.Duration },
		"warmup":   func() { c.Warmup = g.Warmup },
		"rounds":   func() { c.Rounds = g.Rounds },
		"jobs":     func() { c.Jobs = g.Jobs },
	} {
		if f.given[name] {
			set()
		}
	}
	return c
}
