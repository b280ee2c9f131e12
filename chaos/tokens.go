package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tarry/bench/localcluster"
)

// tokenHolders is how many clients use tokens of their own, which end.
const tokenHolders = 3

// checkTokens makes the cluster refuse calls without a token, and the clients of the run use
// one that allows everything.
func (r *run) checkTokens(ctx context.Context) error {
	n := r.cluster.Nodes()[0]
	secret, err := os.ReadFile(filepath.Join(n.DataDir(), "bootstrap-secret"))
	if err != nil {
		return fmt.Errorf("read what proves that a token may be made: %w", err)
	}
	var root struct{ Token string }
	if err := r.cluster.Post(ctx, n, "/v1/auth/bootstrap", map[string]string{"secret": strings.TrimSpace(string(secret))}, &root); err != nil {
		return err
	}
	localcluster.UseToken(root.Token)
	if err := localcluster.Until(ctx, func() error {
		return r.cluster.Put(ctx, n, "/v1/auth", map[string]string{"mode": "enforce"}, nil)
	}); err != nil {
		return err
	}
	// A node that has not applied this yet passes calls on without the token.
	_, err = verifyStates(ctx, r.cluster)
	return err
}
