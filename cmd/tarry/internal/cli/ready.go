package cli

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
)

// maxMetrics bounds what is read of a node's metrics.
const maxMetrics = 64 << 20

// MetricsPage needs a token, if calls do. /readyz does not, and the profiles are of a port that
// knows no tokens.
const MetricsPage = "/metrics"

// Fetch gets a page of a node.
func (t *Terminal) Fetch(ctx context.Context, node, path string, patience time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if !strings.Contains(node, "://") {
		node = "http://" + node
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, node+path, nil)
	if err != nil {
		return nil, err
	}
	if path == MetricsPage {
		if err := t.sign(q); err != nil {
			return nil, err
		}
	}
	answer, err := t.web.Do(q)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxMetrics))
	if err == nil && answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusServiceUnavailable {
		err = errors.New(answer.Status)
	}
	return body, err
}

// readyPatience bounds one look; a node that takes longer is not ready.
const readyPatience = 3 * time.Second

// NoteUnready asks the nodes, beside a wait that begins, whether one can serve, and
// prints a note with the reason if none can: a node lets a reserve wait for a leader,
// too. It does not block; the function that it returns ends the look.
func (t *Terminal) NoteUnready(ctx context.Context, name string, wait time.Duration) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var why error
		for _, node := range t.Nodes {
			err := t.AskReady(ctx, node)
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
		t.Notes.Line("%s: no node can serve now: %v; waiting for up to %s", name, why, wait)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (t *Terminal) AskReady(ctx context.Context, node string) error {
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

// ReadyReply is what a node says of its readiness.
type ReadyReply struct {
	Ready    bool     `json:"ready"`
	Reasons  []string `json:"reasons"`
	Warnings []string `json:"warnings"`
	Leader   string   `json:"leader"`
}

// Readiness asks one node.
func (t *Terminal) Readiness(ctx context.Context, node string) (r ReadyReply, err error) {
	body, err := t.Fetch(ctx, node, "/readyz", readyPatience)
	if err == nil && json.Unmarshal(body, &r) != nil {
		err = fmt.Errorf("what answers at %s is no node of Tarry", node)
	}
	return r, err
}
