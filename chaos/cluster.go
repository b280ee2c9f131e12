package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"tarry/bench/localcluster"
)

// verification is the answer of POST /v1/cluster/verify.
type verification struct {
	Equal   bool
	Index   uint64
	Digests []struct{ ID, Digest, Error string }
}

// verifyStates asks for the digest of every node's state until all have answered.
func verifyStates(ctx context.Context, c *localcluster.Cluster) (*verification, error) {
	var v verification
	err := localcluster.Until(ctx, func() error {
		leader, err := c.Leader(ctx)
		if err != nil {
			return err
		}
		v = verification{}
		if err := c.Call(ctx, http.MethodPost, leader, "/v1/cluster/verify", &v); err != nil {
			return err
		}
		for _, d := range v.Digests {
			if d.Error != "" {
				return fmt.Errorf("node %s: %s", d.ID, d.Error)
			}
		}
		if want := len(c.Nodes()); len(v.Digests) != want {
			return fmt.Errorf("%d nodes have answered, not %d", len(v.Digests), want)
		}
		return nil
	})
	return &v, err
}

// failovers counts, in the nodes' logs below dir, how often a node took the lead
// after the first time. It counts a leader that is elected again too.
func failovers(dir string) (int, error) {
	logs, err := filepath.Glob(filepath.Join(dir, "*", "log"))
	if err != nil {
		return 0, fmt.Errorf("find the nodes' logs: %w", err)
	}
	n := -1
	for _, path := range logs {
		leads, err := countLines(path, "msg=leading")
		if err != nil {
			return 0, err
		}
		n += leads
	}
	return max(n, 0), nil
}

// countLines counts the lines that hold word as a word of its own.
func countLines(path, word string) (int, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("read a node's log: %w", err)
	}
	defer f.Close()
	n := 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		for _, w := range strings.Fields(lines.Text()) {
			if w == word {
				n++
				break
			}
		}
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("read %s: %w", path, err)
	}
	return n, nil
}
