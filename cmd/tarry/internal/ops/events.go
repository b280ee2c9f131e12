package ops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cluster/events"
	"tarry/cmd/tarry/internal/cli"
	"tarry/internal/sleep"
)

// followEvery is the pause between two looks for new events.
const followEvery = time.Second

const eventsText = `Lists what happened to the cluster, as the nodes saw it: members that stopped and came back,
leaders, clocks, disks, versions, drains and backups. Each node keeps its last 1000 events
since it started. It asks the nodes of --addr, or with --all every member of the cluster, and
orders the events by time, each by the clock of its node.`

func eventsCommand() *cobra.Command {
	c := cli.NewCommand("events", "list what happened to the cluster", "", eventsText, "tarry cluster events --all --kind leader --kind disk", 0, 0)
	var kinds []string
	var follow, all bool
	c.Flags.StringArrayVar(&kinds, "kind", nil, "only events of this `kind`: "+eventKinds()+"; may be given more than once")
	c.Flags.BoolVarP(&follow, "follow", "f", false, "print new events as they come, until Ctrl-C")
	c.Flags.BoolVar(&all, "all", false, "ask all members of the cluster, not only the nodes of --addr")
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		for _, kind := range kinds {
			if !slices.Contains(events.Kinds, kind) {
				return cli.Usagef("--kind is %q; it takes %s", kind, eventKinds())
			}
		}
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		nodes := t.Nodes
		if all {
			members, err := t.Client.Cluster().Members(ctx)
			if err != nil {
				return err
			}
			nodes = addressesOf(t, members)
		}
		w := newEventWatch(t)
		w.kinds, w.path = kinds, c.Path()
		return w.run(ctx, nodes, follow)
	})
}

// eventKinds lists the kinds of events in words.
func eventKinds() string {
	last := len(events.Kinds) - 1
	return strings.Join(events.Kinds[:last], ", ") + " or " + events.Kinds[last]
}

// eventWatch prints the events of nodes.
type eventWatch struct {
	t       *cli.Terminal
	kinds   []string
	path    string
	from    map[string]uint64 // by node: the next number
	process map[string]string // by node: the process that has counted up to it
	silent  map[string]bool   // nodes that did not reply last
}

func newEventWatch(t *cli.Terminal) *eventWatch {
	return &eventWatch{t: t, from: map[string]uint64{}, process: map[string]string{}, silent: map[string]bool{}}
}

// seenEvent is an event with the node that saw it.
type seenEvent struct {
	Node string `json:"node"`
	client.ClusterEvent
}

func (w *eventWatch) run(ctx context.Context, nodes []string, follow bool) error {
	for first := true; ; first = false {
		list, err := w.look(ctx, nodes)
		if first && len(w.silent) == len(nodes) {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		if err := w.print(list, first); err != nil {
			return err
		}
		if !follow {
			return noteSilent(w.t, w.path, err)
		}
		if !sleep.For(ctx, followEvery) {
			return nil
		}
	}
}

// noteSilent prints an error that did not keep a command from its work.
func noteSilent(t *cli.Terminal, path string, err error) error {
	if err != nil {
		t.Notes.Line("%s: %v", path, err)
	}
	return nil
}

// look asks the nodes for new events. The error is that of the nodes that do not reply.
func (w *eventWatch) look(ctx context.Context, nodes []string) (list []seenEvent, failed error) {
	for _, node := range nodes {
		got, err := w.ask(ctx, node)
		if w.silent[node] = err != nil; err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %s", node, cli.Explain(err)))
			continue
		}
		delete(w.silent, node)
		for _, e := range got.Events {
			w.from[node] = e.Number + 1
			if len(w.kinds) == 0 || slices.Contains(w.kinds, e.Kind) {
				list = append(list, seenEvent{got.Node, e})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b seenEvent) int { return a.At.Compare(b.At) })
	return list, failed
}

func (w *eventWatch) ask(ctx context.Context, node string) (client.ClusterEvents, error) {
	c, err := nodeAt(w.t, node)
	if err != nil {
		return client.ClusterEvents{}, err
	}
	defer c.Close()
	got, err := c.Node().Events(ctx, w.from[node])
	if err != nil {
		return got, err
	}
	// A process counts its events anew and may have passed the number already.
	process := got.Node + " " + got.StartedAt.String()
	if before, known := w.process[node]; known && before != process {
		w.from[node] = 0
		got, err = c.Node().Events(ctx, 0)
		process = got.Node + " " + got.StartedAt.String()
	}
	if err == nil {
		w.process[node] = process
	}
	return got, err
}

func (w *eventWatch) print(list []seenEvent, head bool) error {
	if w.t.JSON {
		return cli.PrintAll(w.t, list, nil, nil)
	}
	if len(list) == 0 && !head {
		return nil
	}
	rows := make([][]string, len(list))
	for i, e := range list {
		rows[i] = []string{cli.Timestamp(e.At), e.Node, e.Kind, e.Level, e.Event, detailsOf(e.Details)}
	}
	if head {
		return w.t.Table([]string{"TIME", "NODE", "KIND", "LEVEL", "EVENT", "DETAILS"}, rows)
	}
	for _, row := range rows {
		if err := w.t.Out.Line("%s", strings.Join(row, "  ")); err != nil {
			return err
		}
	}
	return nil
}

func detailsOf(details map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(details)) {
		list = append(list, name+"="+details[name])
	}
	return cli.Dash(strings.Join(list, " "))
}
