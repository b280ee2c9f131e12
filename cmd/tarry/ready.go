package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tarry/internal/sleep"
)

// readyPatience bounds one look; a node that takes longer is not ready.
const readyPatience = 3 * time.Second

// readyPause is the pause between two looks of a command that waits.
const readyPause = 200 * time.Millisecond

// readyCommand asks one node whether it can serve; container health checks call it.
func readyCommand() *cobra.Command {
	c := newCommand("ready", "report whether a node can serve", "", "Exits with 0 when the node can serve clients now, else prints why not and exits with 1. With --patience it waits until the node can.",
		"tarry ready --addr 127.0.0.1:7300", 0, 0)
	return c.does(func(ctx context.Context, t *terminal, _ []string) error {
		if len(t.nodes) != 1 {
			return usagef("asks one node, and --addr (or %s) names %d; name one with --addr", addrEnv, len(t.nodes))
		}
		if c.flags.Changed("patience") {
			return t.awaitReady(ctx, t.nodes[0], c.patience.d)
		}
		return t.askReady(ctx, t.nodes[0])
	})
}

// awaitReady asks a node until it can serve, for the time of patience.
func (t *terminal) awaitReady(ctx context.Context, node string, patience time.Duration) error {
	for end := time.Now().Add(patience); ; {
		err := t.askReady(ctx, node)
		if err == nil || time.Now().After(end) || !sleep.For(ctx, readyPause) {
			return err
		}
	}
}

// noteUnready asks the nodes, beside a wait that begins, whether one can serve, and
// prints a note with the reason if none can: a node lets a reserve wait for a leader,
// too. It does not block; the function that it returns ends the look.
func (t *terminal) noteUnready(ctx context.Context, name string, wait time.Duration) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var why error
		for _, node := range t.nodes {
			err := t.askReady(ctx, node)
			if err == nil || ctx.Err() != nil {
				return
			}
			if unreachable := (*url.Error)(nil); !errors.As(err, &unreachable) { // else the call itself tells
				why = err
			}
		}
		if why == nil {
			return
		}
		t.notes.line("%s: no node can serve now: %v; waiting for up to %s", name, why, wait)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (t *terminal) askReady(ctx context.Context, node string) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	if !strings.Contains(node, "://") {
		node = "http://" + node
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, node+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := t.web.Do(req)
	if err != nil {
		return fmt.Errorf("no answer from %s: %w", node, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	var answer struct {
		Reasons []string `json:"reasons"`
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return fmt.Errorf("the answer of %s was cut short: %w", node, err)
	}
	if json.Unmarshal(body, &answer) != nil || len(answer.Reasons) == 0 {
		return fmt.Errorf("%s answered %s", node, resp.Status)
	}
	return errors.New(strings.Join(answer.Reasons, "; "))
}

// readyReply is what a node says of its readiness.
type readyReply struct {
	Ready    bool     `json:"ready"`
	Reasons  []string `json:"reasons"`
	Warnings []string `json:"warnings"`
	Leader   string   `json:"leader"`
}

// namesLeader reports whether Leader is what the node knows: empty, there is none. To who may
// not observe a node names neither its leader nor reasons, and one that serves has a leader.
func (r readyReply) namesLeader() bool { return r.Leader != "" || !r.Ready && len(r.Reasons) > 0 }

// readiness asks one node.
func (t *terminal) readiness(ctx context.Context, node string) (r readyReply, err error) {
	body, err := t.fetch(ctx, node, "/readyz", readyPatience)
	if err == nil && json.Unmarshal(body, &r) != nil {
		err = fmt.Errorf("what answers at %s is no node of Tarry", node)
	}
	return r, err
}
