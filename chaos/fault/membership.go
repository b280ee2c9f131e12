package fault

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tarry/bench/localcluster"
	"tarry/internal/sleep"
)

// Membership returns the faults that change the members and the leader. After each the
// cluster has the same members as before.
func Membership() []Fault {
	return []Fault{
		{Name: "transfer-storm", Weight: 8, Run: onAll(transferStorm)},
		{Name: "join-leave", Weight: 1, Run: onAll(joinAndLeave)},
		{Name: "replace-node", Weight: 1, Run: onOne(alone((*Env).Node), replace)},
		{Name: "wipe-node", Weight: 1, Run: onOne(alone((*Env).Node), wipeOne)},
		{Name: "old-copy", Weight: 1, Run: onOne(alone((*Env).Node), oldCopy)},
		{Name: "far-behind", Weight: 1, Needs: HookBinary, Run: onOne(alone((*Env).Follower), farBehind)},
	}
}

// transferStorm transfers leadership repeatedly, faster than an operator would. A transfer
// may be refused because another one is under way.
func transferStorm(ctx context.Context, e *Env, _ []*localcluster.Node) error {
	end, done := time.Now().Add(e.Between(2*time.Second, 6*time.Second)), 0
	for time.Now().Before(end) && ctx.Err() == nil {
		leader, err := e.currentLeader(ctx)
		if err != nil {
			return err
		}
		if e.Cluster.Call(ctx, http.MethodPost, leader, "/v1/cluster/transfer-leadership", nil) == nil {
			done++
		}
		sleep.For(ctx, e.Between(100*time.Millisecond, time.Second))
	}
	e.Log.Info("leadership was handed on", "times", done)
	e.Count("transfers", done)
	return nil
}

// extraNode is the node that joins for a while.
const extraNode = "x1"

// joinExtra adds a node to the cluster and waits until it votes.
func (e *Env) joinExtra(ctx context.Context) (*localcluster.Node, error) {
	extra, err := e.Cluster.Add(extraNode)
	if err != nil {
		return nil, err
	}
	if err := extra.Wipe(); err != nil {
		return nil, err
	}
	e.admit(ctx, extra)
	e.Log.Info("a node joins", "node", extra.ID)
	if err := extra.Start(); err != nil {
		return nil, err
	}
	e.awaitVoter(ctx, extra)
	return extra, nil
}

// awaitVoter waits until the node is ready and the leader lists it as a live voter. A node
// that does not become one violates I6.
func (e *Env) awaitVoter(ctx context.Context, n *localcluster.Node) {
	ctx, cancel := Healing(ctx)
	defer cancel()
	err := e.Cluster.WaitReady(ctx, n)
	if err == nil {
		err = e.untilMembers(ctx, func(members []localcluster.Member) error {
			for _, m := range members {
				if m.ID == n.ID && m.Voter && m.Alive {
					return nil
				}
			}
			return fmt.Errorf("%s is no live voter: %+v", n.ID, members)
		})
	}
	if err != nil {
		e.Violate("I6", "a node that joined: %v", err)
	}
}

// untilMembers asks the leader for the members until f returns no error.
func (e *Env) untilMembers(ctx context.Context, f func([]localcluster.Member) error) error {
	return localcluster.Until(ctx, func() error {
		leader, err := e.Cluster.Leader(ctx)
		if err != nil {
			return err
		}
		members, err := e.Cluster.Members(ctx, leader)
		if err != nil {
			return err
		}
		return f(members)
	})
}

// remove asks the leader to remove a member and waits until it is removed. It repeats the
// call while it is refused or its outcome is unknown.
func (e *Env) remove(ctx context.Context, n *localcluster.Node) {
	ctx, cancel := Healing(ctx)
	defer cancel()
	err := localcluster.Until(ctx, func() error {
		leader, err := e.Cluster.Leader(ctx)
		if err != nil {
			return err
		}
		call := e.Cluster.Call(ctx, http.MethodDelete, leader, "/v1/cluster/members/"+n.ID, nil)
		members, err := e.Cluster.Members(ctx, leader)
		if err != nil {
			return err
		}
		for _, m := range members {
			if m.ID == n.ID {
				return errors.Join(call, fmt.Errorf("%s is still a member", n.ID))
			}
		}
		return nil
	})
	if err != nil {
		e.Violate("I6", "a node could not be removed: %v", err)
	}
}

// admit lets a node join again if it was removed before.
func (e *Env) admit(ctx context.Context, n *localcluster.Node) {
	ctx, cancel := Healing(ctx)
	defer cancel()
	err := localcluster.Until(ctx, func() error {
		leader, err := e.Cluster.Leader(ctx)
		if err != nil {
			return err
		}
		var list struct {
			Removed []struct {
				ID string `json:"id"`
			} `json:"removed"`
		}
		if err := e.Cluster.Call(ctx, http.MethodGet, leader, removedPath, &list); err != nil {
			return err
		}
		for _, removed := range list.Removed {
			if removed.ID == n.ID {
				call := e.Cluster.Call(ctx, http.MethodDelete, leader, removedPath+"/"+n.ID, nil)
				return errors.Join(call, fmt.Errorf("%s was still a removed node", n.ID)) // look again
			}
		}
		return nil
	})
	if err != nil {
		e.Violate("I6", "a node that was removed could not be admitted: %v", err)
	}
}

const removedPath = "/v1/cluster/removed"

// dismiss removes the extra node.
func (e *Env) dismiss(ctx context.Context, extra *localcluster.Node) error {
	e.remove(ctx, extra)
	return errors.Join(extra.Kill(), e.Cluster.Forget(extra))
}

// joinAndLeave makes a node join, stay for a while, and leave by itself.
func joinAndLeave(ctx context.Context, e *Env, _ []*localcluster.Node) error {
	extra, err := e.joinExtra(ctx)
	if err != nil {
		return err
	}
	sleep.For(ctx, e.Hold())
	e.Log.Info("it leaves", "node", extra.ID)
	patience, cancel := Healing(ctx)
	defer cancel()
	if err := e.Cluster.Call(patience, http.MethodPost, extra, "/v1/cluster/leave", nil); err != nil {
		// The reply of a node that leaves may be lost; the removal continues.
		e.Log.Info("the call to leave was not answered well", "error", err)
	}
	return e.dismiss(ctx, extra)
}

// replace replaces a member by another node, and then that one by the first again, without
// its data.
func replace(ctx context.Context, e *Env, victim *localcluster.Node) error {
	extra, err := e.joinExtra(ctx)
	if err != nil {
		return err
	}
	e.Log.Info("it takes the place of a member", "member", victim.ID)
	e.remove(ctx, victim)
	if err := errors.Join(victim.Kill(), victim.Wipe()); err != nil {
		return err
	}
	e.admit(ctx, victim)
	if err := victim.Start(); err != nil {
		return err
	}
	e.awaitVoter(ctx, victim)
	return e.dismiss(ctx, extra)
}

// wipeOne removes a node's data: it has lost its disk and its votes and must rejoin as a
// new member.
func wipeOne(ctx context.Context, e *Env, victim *localcluster.Node) error {
	e.Log.Info("kill -9 and wipe", "node", victim.ID)
	if err := errors.Join(victim.Kill(), victim.Wipe()); err != nil {
		return err
	}
	sleep.For(ctx, e.downtime())
	err := e.Return(ctx, victim)
	e.awaitVoter(ctx, victim)
	return err
}

// wayBack is the part of a refusal of a data directory that says what to do.
const wayBack = "rejoin"

// oldCopy restores an earlier copy of a node's directory, like an operator with a backup.
// The node has lost votes and entries that it had acknowledged. It must refuse to serve and
// say how to recover, which is what the harness then does.
func oldCopy(ctx context.Context, e *Env, victim *localcluster.Node) error {
	old := filepath.Join(e.Dir, "copy")
	if err := errors.Join(victim.Kill(), os.CopyFS(old, os.DirFS(victim.DataDir()))); err != nil {
		return err
	}
	copied, err := e.appliedByLeader(ctx)
	if err != nil {
		return errors.Join(err, e.Return(ctx, victim))
	}
	if err := e.Return(ctx, victim); err != nil {
		return err
	}
	sleep.For(ctx, e.Between(time.Second, 5*time.Second))
	if err := e.awaitApplied(ctx, victim, copied); err != nil {
		return err
	}
	e.Log.Info("an old copy of the directory is put back", "node", victim.ID)
	if err := errors.Join(victim.Kill(), victim.Wipe(), os.CopyFS(victim.DataDir(), os.DirFS(old)), victim.Start()); err != nil {
		return err
	}
	if err := e.awaitRefusal(ctx, victim); err != nil {
		return err
	}
	if err := victim.Wipe(); err != nil {
		return err
	}
	err = e.Return(ctx, victim)
	e.awaitVoter(ctx, victim)
	return err
}

// awaitApplied waits until the node has acknowledged an entry after index.
func (e *Env) awaitApplied(ctx context.Context, n *localcluster.Node, index uint64) error {
	ctx, cancel := Healing(ctx)
	defer cancel()
	return e.untilMembers(ctx, func(members []localcluster.Member) error {
		for _, m := range members {
			if m.ID == n.ID && m.AppliedIndex > index {
				return nil
			}
		}
		return fmt.Errorf("%s has not got beyond entry %d: %+v", n.ID, index, members)
	})
}

// refusal is how long a node may take to detect that its directory is an old copy: it must
// get the others' records of what it acknowledged.
const refusal = 30 * time.Second

// awaitRefusal waits until the node has ended by itself, and reads its message.
func (e *Env) awaitRefusal(ctx context.Context, n *localcluster.Node) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refusal)
	defer cancel()
	code, err := n.Wait(ctx)
	if err != nil {
		e.Violate("fault", "node %s did not refuse an old copy of its directory within %v", n.ID, refusal)
		return n.Kill()
	}
	out, err := n.Output()
	if err != nil {
		return err
	}
	if code == 0 || !strings.Contains(out, wayBack) {
		e.Violate("fault", "node %s ended with %d on an old copy of its directory and does not say how to recover: %.300s", n.ID, code, out)
	}
	e.Count("old-copies-refused", 1)
	return nil
}

// behind is the minimum number of entries that a follower misses before it restarts, more
// than nodes keep with --trailing 500. behindLimit ends the wait for them.
const (
	behind      = 1200
	behindLimit = 30 * time.Second
)

// farBehind keeps a follower down until the others have dropped the entries that it misses,
// so that it needs the whole state.
func farBehind(ctx context.Context, e *Env, victim *localcluster.Node) error {
	if err := victim.Kill(); err != nil {
		return err
	}
	start, err := e.appliedByLeader(ctx)
	if err != nil {
		return errors.Join(err, e.Return(ctx, victim))
	}
	limited, cancel := context.WithTimeout(ctx, behindLimit)
	defer cancel()
	missed := uint64(0)
	for missed < behind && limited.Err() == nil {
		sleep.For(limited, 200*time.Millisecond)
		if now, err := e.appliedByLeader(limited); err == nil {
			missed = now - start
		}
	}
	e.Log.Info("a follower comes back", "node", victim.ID, "misses", missed)
	e.Count("entries-missed-by-followers", int(missed))
	return e.Return(ctx, victim)
}

func (e *Env) appliedByLeader(ctx context.Context) (index uint64, err error) {
	err = e.untilMembers(ctx, func(members []localcluster.Member) error {
		for _, m := range members {
			if m.Role == "leader" {
				index = m.AppliedIndex
				return nil
			}
		}
		return errors.New("no leader is known")
	})
	return index, err
}
