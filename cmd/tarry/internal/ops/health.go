package ops

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
	"tarry/internal/sleep"
)

// healthEvery is the pause between two looks of a command that waits. healthyFor is how long all of
// them must find the cluster healthy: the leader asks its members every 2 s, so that a single look may
// be older than what has just been done to a node.
const (
	healthEvery = 500 * time.Millisecond
	healthyFor  = 5 * time.Second
)

const healthText = `Reports whether the cluster is healthy and how many more nodes may fail. Exit code 1 if it is not.
A warning of what is to be done in time, such as a certificate that ends within a week, does not make it unhealthy.

With --wait it waits until the cluster has been healthy for 5 s, which tells when the next node may
be stopped: after a restart, an upgrade or a disk that was replaced.`

func healthCommand() *cobra.Command {
	c := cli.NewCommand("health", "tell whether the cluster is healthy; exit code 1 if not", "", healthText,
		"tarry cluster health --wait 10m", 0, 0)
	wait := &cli.Duration{Positive: true}
	c.Flags.Var(wait, "wait", "`time` to wait until the cluster is healthy; default: do not wait")
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		var h client.Health
		var err error
		if wait.Value == 0 {
			h, err = t.Client.Cluster().Health(ctx)
		} else {
			h, err = awaitHealthy(ctx, wait.Value, t.Client.Cluster().Health, func(why string) { t.Notes.Line("%s: waiting: %s", c.Path(), why) })
		}
		if err != nil {
			return err
		}
		if t.JSON {
			err = t.PrintJSON(h)
		} else {
			err = printHealth(t, h)
		}
		if err == nil && !h.Healthy {
			return fmt.Errorf("the cluster is not healthy: %s", whyUnhealthy(&h))
		}
		return err
	})
}

// awaitHealthy asks for the cluster's health until it has been healthy for healthyFor, for some time at
// most. It returns the last reply, and notes why it waits when that changes.
func awaitHealthy(ctx context.Context, within time.Duration, ask func(context.Context) (client.Health, error), note func(why string)) (h client.Health, err error) {
	end, since, noted := time.Now().Add(within), time.Time{}, ""
	for {
		h, err = ask(ctx)
		now, why := time.Now(), ""
		switch {
		case err != nil:
			since, why = time.Time{}, err.Error()
		case !h.Healthy:
			since, why = time.Time{}, whyUnhealthy(&h)
		case since.IsZero():
			since = now
		case now.Sub(since) >= healthyFor:
			return h, nil
		}
		if why != noted && why != "" {
			note(why)
		}
		noted = why
		if now.After(end) {
			if err == nil && h.Healthy {
				err = fmt.Errorf("the cluster has been healthy for less than %s", healthyFor)
			}
			return h, err
		}
		if !sleep.For(ctx, healthEvery) {
			return h, errors.Join(errors.New("interrupted before the cluster was healthy"), err)
		}
	}
}

// whyUnhealthy joins the problems because of which a cluster is not healthy: a node of an earlier
// release does not say which ones those are.
func whyUnhealthy(h *client.Health) string {
	var list []string
	for _, p := range h.Problems {
		if p.Unhealthy {
			list = append(list, p.Reason)
		}
	}
	if len(list) == 0 {
		list = h.Reasons
	}
	return cli.Dash(strings.Join(list, "; "))
}

func printHealth(t *cli.Terminal, h client.Health) error {
	err := errors.Join(
		t.Out.Line("healthy: %s", cli.Yes(h.Healthy)),
		t.Out.Line("voters that may still fail: %d", h.FailureTolerance),
		t.Out.Line("cluster version: %d", h.ClusterVersion),
	)
	for _, p := range h.Problems {
		err = errors.Join(err, t.Out.Line("%s: %s", p.Severity, p.Reason))
	}
	if h.Upgrade != "" {
		err = errors.Join(err, t.Out.Line("upgrade: %s", h.Upgrade))
	}
	return err
}
