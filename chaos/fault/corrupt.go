//go:build linux

package fault

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"tarry/bench/localcluster"
	"tarry/chaos/disk"
	"tarry/internal/sleep"
)

// part is a kind of file below a data directory.
type part struct {
	name, pattern string
}

// parts returns the kinds of files with data. The patterns are on-disk names.
func parts() []part {
	return []part{
		{"log", "shard-0/raft/wal/*.wal"}, // of a node with raft-wal; the next two of one with raft-boltdb
		{"log-file", "shard-0/raft/raft.db"},
		{"log-watermark", "shard-0/raft/raft.db.watermark"},
		{"wal-watermark", "shard-0/raft/wal/watermark"},
		{"log-list", "shard-0/raft/wal/segments"},
		{"votes", "shard-0/raft/votes"},
		{"table", "shard-0/fsm/gen-*/*.sst"},
		{"manifest", "shard-0/fsm/gen-*/MANIFEST-*"},
		{"marker", "shard-0/fsm/gen-*/marker.manifest.*"},
		{"manifest-length", "shard-0/fsm/gen-*/LOGS"},
		{"generation", "shard-0/fsm/CURRENT"},
		{"identity", "node.json"},
	}
}

// Corrupt returns the faults that damage files of one node. The node must detect the damage
// and refuse to start with a message that says how to recover, or repair the damage, or be
// unaffected. It must not serve a state that differs from the cluster's.
func Corrupt() []Fault {
	var list []Fault
	for _, p := range parts() {
		list = append(list, Fault{Name: "corrupt-" + p.name, Weight: 1, Run: corrupt(p, disk.Damages())})
	}
	return append(list,
		Fault{Name: "corrupt-running", Needs: FaultyDisk, Weight: 1, Run: onOne((*Env).expendable, corruptRunning)},
	)
}

// expendable claims all nodes and chooses one of them. It may lose its data, so all must
// vote.
func (e *Env) expendable(ctx context.Context) (*localcluster.Node, error) {
	nodes, err := e.All()
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		e.awaitVoter(ctx, n)
	}
	return nodes[0], nil
}

// files returns the directory of a node's files while the node does not run.
func (e *Env) files(n *localcluster.Node) string {
	if e.Disks != nil {
		return e.Disks.Of(n.ID).Files()
	}
	return n.DataDir()
}

// oneFile draws a file of the part; "" when there is none.
func (e *Env) oneFile(dir string, p part) (string, error) {
	list, err := filepath.Glob(filepath.Join(dir, p.pattern))
	if err != nil || len(list) == 0 {
		return "", err
	}
	slices.Sort(list)
	return list[e.Rand.IntN(len(list))], nil
}

// corrupt damages a file of a node that is not running.
func corrupt(p part, damages []disk.Damage) func(context.Context, *Env) error {
	return onOne((*Env).expendable, func(ctx context.Context, e *Env, n *localcluster.Node) error {
		path, err := e.oneFile(e.files(n), p)
		if err != nil {
			return err
		}
		var old []byte
		if path != "" {
			if old, err = os.ReadFile(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
		sleep.For(ctx, e.Between(200*time.Millisecond, time.Second))
		if err := n.Kill(); err != nil {
			return err
		}
		if _, err := os.Stat(path); err != nil { // the node has removed it: choose another
			if path, err = e.oneFile(e.files(n), p); err != nil {
				return err
			}
		}
		what, err := e.damage(n, p, path, old, damages)
		if err != nil {
			return err
		}
		return e.comeBack(ctx, n, what)
	})
}

// damage draws a damage and applies it. It returns "part, damage", or "" when
// there was nothing to damage.
func (e *Env) damage(n *localcluster.Node, p part, path string, old []byte, damages []disk.Damage) (string, error) {
	if path == "" {
		return "", nil
	}
	d := damages[e.Rand.IntN(len(damages))]
	where, err := d.Do(path, old, e.Rand)
	if errors.Is(err, disk.ErrNothingToDamage) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("damage %s: %w", path, err)
	}
	e.Log.Info("damage", "node", n.ID, "file", filepath.Base(path), "damage", d.Name, "where", where)
	if e.Disks != nil {
		if err := e.Disks.Of(n.ID).DropCache(); err != nil {
			return "", err
		}
	}
	return p.name + " " + d.Name, nil
}

// comeBack starts a node with a damaged file and checks what it does.
func (e *Env) comeBack(ctx context.Context, n *localcluster.Node, what string) error {
	if what == "" {
		e.Count("damages without a file", 1)
		return e.Return(ctx, n)
	}
	before, err := logSize(n)
	if err != nil {
		return err
	}
	if err := n.Start(); err != nil {
		return err
	}
	patience, cancel := Healing(ctx)
	defer cancel()
	until(patience, healing, func() bool { return !n.Running() || e.verified(patience, n) })
	if n.Running() {
		e.Count(what+": started", 1)
		e.Healed()
		if patience.Err() != nil {
			e.Violate("fault", "node %s runs with a damaged file (%s) and is not ready, or its state cannot be compared", n.ID, what)
		}
		return nil
	}
	return e.refused(ctx, n, what, before)
}

// wayOut matches the part of a refusal that says what to do.
var wayOut = regexp.MustCompile(`rejoin as a new member|move the directory away|move .* away`)

// refused checks that the node's log says how to recover, does that, and waits for the
// node as a new member.
func (e *Env) refused(ctx context.Context, n *localcluster.Node, what string, before int64) error {
	said, err := logSince(n, before)
	if err != nil {
		return err
	}
	if wayOut.MatchString(said) {
		e.Count(what+": refused", 1)
	} else {
		e.Count(what+": ended without a way out", 1)
		e.Violate("fault", "node %s ended because of a damaged file (%s) and did not say how to recover: %s", n.ID, what, lastLines(said))
	}
	if err := n.Wipe(); err != nil {
		return err
	}
	err = e.Return(ctx, n)
	e.awaitVoter(ctx, n)
	return err
}

// verified compares the node's state with the others' and reports whether it is the same.
// A different state violates I9.
func (e *Env) verified(ctx context.Context, n *localcluster.Node) bool {
	if e.Cluster.Get(ctx, n, "/readyz", nil) != nil {
		return false
	}
	leader, err := e.Cluster.Leader(ctx)
	if err != nil {
		return false
	}
	var v struct {
		Equal   bool
		Digests []struct{ ID, Error string }
	}
	if e.Cluster.Call(ctx, http.MethodPost, leader, "/v1/cluster/verify", &v) != nil {
		return false
	}
	there := false
	for _, d := range v.Digests {
		if d.Error != "" {
			return false
		}
		there = there || d.ID == n.ID
	}
	if there && !v.Equal {
		e.Violate("I9", "node %s serves a state that is not the cluster's: %+v", n.ID, v)
	}
	return there
}

func logSize(n *localcluster.Node) (int64, error) {
	info, err := os.Stat(n.LogPath())
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func logSince(n *localcluster.Node, offset int64) (string, error) {
	data, err := os.ReadFile(n.LogPath())
	if err != nil {
		return "", err
	}
	return string(data[min(offset, int64(len(data))):]), nil
}

// lastLines returns the end of a log, short enough for a report.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	text = strings.Join(lines[max(0, len(lines)-3):], " | ")
	return text[max(0, len(text)-600):]
}

// corruptRunning flips bits of a file while the node uses it. The node may not read that
// place again before the next start, so it is killed and restarted after a while.
func corruptRunning(ctx context.Context, e *Env, n *localcluster.Node) error {
	list := parts()
	p := list[e.Rand.IntN(len(list))]
	path, err := e.oneFile(e.files(n), p)
	if err != nil {
		return err
	}
	before, err := logSize(n)
	if err != nil {
		return err
	}
	flip := disk.Damages()[:1]
	what, err := e.damage(n, p, path, nil, flip)
	if errors.Is(err, os.ErrNotExist) { // removed by the node a moment ago
		what, err = "", nil
	}
	if err != nil {
		return err
	}
	sleep.For(ctx, e.Hold())
	if !n.Running() {
		return e.refused(ctx, n, what+" while running", before)
	}
	if err := n.Kill(); err != nil {
		return err
	}
	if what != "" {
		what += " while running"
	}
	return e.comeBack(ctx, n, what)
}
