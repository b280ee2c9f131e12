package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tarry/bench/localcluster"
	"tarry/internal/sleep"
)

const (
	// backupPause is the time between two backups.
	backupPause = 3 * time.Second
	// chainLength is after how many backups one is made whole in any case.
	chainLength = 8
	// restoredNodes are those of the cluster that a backup becomes.
	restoredNodes = 3
)

// backups is a successor that is restored from the last of many backups, which are made under
// faults, are incremental where they can be, and are each verified.
type backups struct {
	run     *run
	dir     string
	cluster *localcluster.Cluster
	chain   []string // the files that the next one may build on, the oldest first
	made    int      // complete ones

	whole, incremental, failed int
	longest                    int // chain
	reason                     error
}

func newBackups(r *run, push string) (*backups, error) {
	b := &backups{run: r, dir: filepath.Join(r.dir, "backups")}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return nil, err
	}
	var err error
	b.cluster, err = r.successorCluster(restoredNodes, push)
	return b, err
}

func (b *backups) begin(context.Context) error { return nil }

// follow makes backups one after the other. One that cannot be made because of a fault is none;
// one that is complete and cannot be verified is a broken promise.
func (b *backups) follow(ctx context.Context) error {
	for sleep.For(ctx, backupPause) {
		if err := b.one(ctx); err != nil && ctx.Err() == nil {
			b.failed++
			b.reason = err
		}
	}
	return nil
}

// one makes a backup and verifies it.
func (b *backups) one(ctx context.Context) error {
	var since []string
	if n := len(b.chain); n > 0 && n < chainLength {
		since = []string{"--since", b.chain[n-1]}
	}
	file := filepath.Join(b.dir, fmt.Sprintf("%04d.backup", b.made+1))
	out, err := b.run.backUp(ctx, file, since...)
	if err != nil {
		return err
	}
	b.made++
	var made struct{ Incremental bool }
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		return fmt.Errorf("read %q: %w", out, err)
	}
	if made.Incremental {
		b.incremental++
		b.chain = append(b.chain, file)
	} else {
		b.whole++
		old := b.chain
		b.chain = []string{file}
		defer removeAll(old)
	}
	b.longest = max(b.longest, len(b.chain))
	if _, err := b.run.tarry(ctx, "backup", "verify", file, "--temp-dir", b.dir); err != nil && ctx.Err() == nil {
		b.run.report.Violate("backup", "", "a complete backup cannot be verified: %v", err)
	}
	return nil
}

// removeAll removes backups that nothing builds on any more.
func removeAll(files []string) {
	for _, f := range files {
		_ = os.Remove(f) // it only takes room until the run's directory is removed
	}
}

// catchUp makes the last backup, which has everything that was acknowledged.
func (b *backups) catchUp(ctx context.Context) error {
	return localcluster.Until(ctx, func() error { return b.one(ctx) })
}

func (b *backups) takeOver(ctx context.Context) (*localcluster.Cluster, error) {
	if err := b.run.cluster.Stop(); err != nil {
		return nil, err
	}
	nodes := b.cluster.Nodes()
	if _, err := b.run.tarry(ctx, "restore", b.chain[len(b.chain)-1], "--data-dir", nodes[0].DataDir(), "--node-id", nodes[0].ID); err != nil {
		return nil, fmt.Errorf("%w: the last backup cannot be restored: %w", errBroken, err)
	}
	for _, n := range nodes { // the first one has the state, and lets the others join
		if err := n.Start(); err != nil {
			return nil, err
		}
		if err := b.cluster.WaitReady(ctx, n); err != nil {
			return nil, err
		}
	}
	return b.cluster, nil
}

func (b *backups) stop() error { return b.cluster.Stop() }

func (b *backups) summary() string {
	s := fmt.Sprintf("%d whole, %d incremental, in chains of up to %d, all verified, the last one restored; %d could not be made", b.whole, b.incremental, b.longest, b.failed)
	if b.reason != nil {
		s += fmt.Sprintf(" (the last of these: %v)", b.reason)
	}
	return s
}
