package ops

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os/signal"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/archive"
	"tarry/cmd/tarry/internal/cli"
)

const bundleText = `Writes a file for whoever helps you: versions, members, health, clocks, and of each member its
build, settings, readiness, metrics, last 1000 events and last 256 KiB of log, and what tarry
doctor finds. It reads only. What cannot be read is named in errors.txt; the rest is in the bundle all the same.
If you interrupt it, the file has what had been read.

It has no job bodies, ids or headers, no secrets of push targets, and no setting that may be a
secret. It has names of topics (in the metrics), hosts and files. Of a node that is down, or was
restarted since, add the log yourself. Profiles are in it with --pprof, for nodes that were started
with --pprof-addr.

The file must not exist; only its owner can read it (mode 0600).`

// profileTime bounds one profile.
const profileTime = 30 * time.Second

func DebugCommand() *cobra.Command {
	return cli.Group("debug", "collect what helps to find out what is wrong", "Collects what helps to find out what is wrong.", bundleCommand())
}

func bundleCommand() *cobra.Command {
	c := cli.NewCommand("bundle", "write a file with the state of all nodes, without secrets or jobs", "", bundleText, "tarry debug bundle --out tarry-debug.tar.gz", 0, 0)
	var out string
	c.Flags.StringVarP(&out, "out", "o", "", "`file` to write, a .tar.gz, which must not exist")
	profiles := c.Flags.StringArray("pprof", nil, "`host:port` of --pprof-addr of a node, whose profiles are added; may be given more than once")
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		if out == "" {
			return cli.Usagef("needs --out, a file to write")
		}
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		b := &bundle{t: t, at: time.Now()}
		if err := archive.CreateWhole(out, func(to io.Writer) error { return b.write(ctx, to, *profiles) }); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted; %s has what had been read, %d files", out, b.parts)
		}
		if t.JSON {
			return t.PrintJSON(struct {
				File   string   `json:"file"`
				Parts  int      `json:"parts"`
				Errors []string `json:"errors"`
			}{out, b.parts, append([]string{}, b.errors...)})
		}
		for _, e := range b.errors {
			t.Notes.Line("%s: not in the bundle: %s", c.Path(), e)
		}
		return t.Out.Line("%s: %d files. It has no secrets and no jobs; it has names of topics and hosts", out, b.parts)
	})
}

// bundle is an archive that is being written.
type bundle struct {
	t      *cli.Terminal
	at     time.Time
	to     *tar.Writer
	parts  int
	errors []string // what could not be read
}

func (b *bundle) write(ctx context.Context, to io.Writer, profiles []string) error {
	packed := gzip.NewWriter(to)
	b.to = tar.NewWriter(packed)
	err := b.collect(ctx, profiles)
	return errors.Join(err, b.to.Close(), packed.Close())
}

// collect adds all parts, until ctx ends. Its error is that of the file: nodes may fail.
func (b *bundle) collect(ctx context.Context, profiles []string) error {
	t := b.t
	members, err := t.Client.Cluster().Members(ctx)
	b.failed("members", err)
	health, err := t.Client.Cluster().Health(ctx)
	b.failed("health", err)
	for _, p := range health.Problems {
		t.Notes.Line("health: %s: %s", p.Severity, p.Reason)
	}
	clocks, err := t.Client.Cluster().Clocks(ctx)
	b.failed("clocks", err)
	errs := []error{
		b.addJSON("binary.json", binaryVersion()), b.addJSON("members.json", members),
		b.addJSON("health.json", health), b.addJSON("clocks.json", clocks),
	}
	nodes := map[string]string{} // address by name
	for _, m := range members {
		if m.HTTPAddress != "" {
			nodes[m.ID] = addressOf(t, m)
		} else {
			b.failed(m.ID, errors.New("it is down, and its HTTP address is not known"))
		}
	}
	if len(nodes) == 0 { // without a leader a node knows no others
		for _, node := range t.Nodes {
			nodes[node] = node
		}
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if ctx.Err() != nil {
			break
		}
		t.Notes.Line("bundle: %s at %s", name, nodes[name])
		errs = append(errs, b.node(ctx, name, nodes[name]))
	}
	for _, address := range profiles {
		errs = append(errs, b.profiles(ctx, address))
	}
	if ctx.Err() == nil {
		var found checkup
		found.cluster(ctx, t)
		errs = append(errs, b.addJSON("doctor.json", found.list))
	}
	if ctx.Err() != nil {
		b.failed("the rest", errors.New("interrupted"))
	}
	return errors.Join(append(errs, b.add("errors.txt", []byte(strings.Join(b.errors, "\n")+"\n")))...)
}

// node adds what one node says.
func (b *bundle) node(ctx context.Context, name, address string) error {
	dir := path.Join("nodes", fileName(name))
	c, err := nodeAt(b.t, address)
	if err != nil {
		b.failed(name, err)
		return nil
	}
	defer c.Close()
	var errs []error
	about, err := c.Node().Info(ctx)
	var failed *client.Error
	if errors.As(err, &failed) && failed.Status == 0 { // nothing else would be read either
		b.failed(name, err)
		return nil
	}
	if b.failed(name+": build and settings", err) {
		errs = append(errs, b.addJSON(path.Join(dir, "node.json"), about))
	}
	events, err := c.Node().Events(ctx, 0)
	if b.failed(name+": events", err) {
		errs = append(errs, b.addJSON(path.Join(dir, "events.json"), events))
	}
	log, err := c.Node().Log(ctx)
	if b.failed(name+": log", err) {
		errs = append(errs, b.add(path.Join(dir, "log.txt"), []byte(strings.Join(log.Lines, "\n")+"\n")))
	}
	for file, page := range map[string]string{"readyz.json": "/readyz", "metrics.txt": cli.MetricsPage} {
		body, err := b.t.Fetch(ctx, address, page, lookTime)
		if b.failed(name+": "+page, err) {
			errs = append(errs, b.add(path.Join(dir, file), body))
		}
	}
	return errors.Join(errs...)
}

// profiles adds those of one node: where its goroutines are, and its memory.
func (b *bundle) profiles(ctx context.Context, address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return cli.Usagef("--pprof is %q; it takes host:port", address)
	}
	var errs []error
	for file, page := range map[string]string{
		"goroutines.txt": "/debug/pprof/goroutine?debug=2", "heap.pb.gz": "/debug/pprof/heap", "cpu.pb.gz": "/debug/pprof/profile?seconds=5",
	} {
		body, err := b.t.Fetch(ctx, address, page, profileTime)
		if b.failed("profile "+file+" of "+address, err) {
			errs = append(errs, b.add(path.Join("profiles", fileName(address), file), body))
		}
	}
	return errors.Join(errs...)
}

// failed records an error. It reports whether there is none.
func (b *bundle) failed(what string, err error) (ok bool) {
	if err != nil {
		b.errors = append(b.errors, what+": "+cli.Explain(err))
	}
	return err == nil
}

// addJSON adds a file with the fields of v.
func (b *bundle) addJSON(name string, v any) error {
	text, err := json.Marshal(v, jsontext.WithIndent("  "), json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return b.add(name, append(text, '\n'))
}

func (b *bundle) add(name string, content []byte) error {
	b.parts++
	head := &tar.Header{Name: path.Join("tarry-debug", name), Mode: 0o600, Size: int64(len(content)), ModTime: b.at, Format: tar.FormatPAX}
	if err := b.to.WriteHeader(head); err != nil {
		return err
	}
	_, err := io.Copy(b.to, bytes.NewReader(content))
	return err
}

// fileName is a name of a file, from that of a node, which may have any character.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '_'
	}, strings.TrimLeft(name, "."))
}
