package fault

import (
	"context"
	"errors"
	"time"

	"tarry/bench/localcluster"
	"tarry/internal/sleep"
)

// Upgrade returns the faults of mixed releases.
func Upgrade() []Fault {
	return []Fault{{Name: "upgrade-and-back", Needs: NextRelease | HookBinary, Weight: 3, Run: onAll(upgradeAndBack)}}
}

// holdVersion keeps the cluster version from being raised, so that a downgrade is possible.
const holdVersion = "TARRY_HOLD_VERSION"

// upgradeAndBack restarts some or all nodes with the next release, one after the other,
// runs the releases together for a while, and downgrades all of them.
func upgradeAndBack(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
	upgraded := nodes[:1+e.Rand.IntN(len(nodes))]
	before := make(map[*localcluster.Node]string)
	most := e.oldestRuns(ctx, upgraded[0])
	for _, n := range upgraded {
		if ctx.Err() != nil {
			break
		}
		before[n] = n.Binary()
		if err := e.replace(ctx, n, e.Next, "true"); err != nil {
			return err
		}
		e.stillVersion(ctx, n, most)
		sleep.For(ctx, e.Between(0, time.Second))
	}
	if len(before) == len(nodes) {
		sleep.For(ctx, e.Between(0, 5*time.Second)) // the version would be raised now
	}
	e.Rand.Shuffle(len(upgraded), func(i, j int) { upgraded[i], upgraded[j] = upgraded[j], upgraded[i] })
	for _, n := range upgraded {
		if before[n] == "" {
			continue
		}
		e.stillVersion(ctx, n, most)
		if err := e.replace(ctx, n, before[n], ""); err != nil {
			return err
		}
	}
	return nil
}

// replace stops or kills a node and starts it with another binary.
func (e *Env) replace(ctx context.Context, n *localcluster.Node, binary, hold string) error {
	n.SetBinary(binary)
	n.Setenv(holdVersion, hold)
	if e.Rand.IntN(2) == 0 {
		return e.restart(ctx, n)
	}
	e.Log.Info("kill -9", "node", n.ID)
	return errors.Join(n.Kill(), e.Return(ctx, n))
}

// oldestRuns returns the newest cluster version that all members run; 0: it is not known now.
func (e *Env) oldestRuns(ctx context.Context, n *localcluster.Node) (most uint32) {
	members, err := e.Cluster.Members(ctx, n)
	if err != nil {
		return 0
	}
	for _, m := range members {
		if m.MaxVersion != 0 && (most == 0 || m.MaxVersion < most) {
			most = m.MaxVersion
		}
	}
	return most
}

// stillVersion checks that every node's cluster version is one that all releases run; want 0 means
// that it is not known.
func (e *Env) stillVersion(ctx context.Context, n *localcluster.Node, want uint32) {
	members, err := e.Cluster.Members(ctx, n)
	if err != nil {
		return // there may be no leader now; the next call checks
	}
	for _, m := range members {
		if want != 0 && m.ClusterVersion > want {
			e.Violate("I13", "node %s has cluster version %d while members run only %d", m.ID, m.ClusterVersion, want)
		}
	}
}
