package ops

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cluster"
	"tarry/cmd/tarry/internal/cli"
	"tarry/job"
)

// nodeVersion is what is known of the versions of one member.
type nodeVersion struct {
	ID             string `json:"id"`
	Alive          bool   `json:"alive"`
	Release        string `json:"release"`
	Revision       string `json:"revision,omitzero"`
	ClusterVersion uint32 `json:"cluster_version"` // of its state; 0: it does not answer
	Min            uint32 `json:"min_cluster_version"`
	Max            uint32 `json:"max_cluster_version"`
	StoreFormat    uint32 `json:"store_format,omitzero"` // 0: its HTTP address did not answer
	WireVersion    uint32 `json:"wire_version,omitzero"`
	voter          bool
}

// versionReport is the reply of tarry cluster version and, with Blockers, of upgrade --check.
type versionReport struct {
	ClusterVersion uint32        `json:"cluster_version"`
	NextVersion    uint32        `json:"next_version,omitzero"` // what the cluster is raised to next; 0: nothing is due
	WaitsFor       string        `json:"waits_for,omitzero"`    // what the raise waits for; empty: the leader raises it now
	Nodes          []nodeVersion `json:"nodes"`
	Binary         nodeVersion   `json:"binary"` // of this command
	Ready          *bool         `json:"ready,omitzero"`
	Blockers       []string      `json:"blockers,omitzero"`
}

func binaryVersion() nodeVersion {
	runs := job.ReleaseVersions()
	return nodeVersion{Release: cli.Version, Revision: cli.Revision(), Min: runs.Min, Max: runs.Max, StoreFormat: cluster.StoreFormat, WireVersion: cluster.WireVersion}
}

const clusterVersionText = `Shows the release of every node, the cluster versions that it runs, and the formats of its
state and of its messages; what the cluster version is raised to next, and what that waits
for (docs/operations.md, Upgrade).`

func clusterVersionCommand() *cobra.Command {
	c := cli.NewCommand("version", "show the versions of all nodes, and what the next raise waits for", "", clusterVersionText, "tarry cluster version", 0, 0)
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		r, _, err := askVersions(ctx, t)
		if err != nil {
			return err
		}
		if t.JSON {
			return t.PrintJSON(r)
		}
		return printVersions(t, &r)
	})
}

const upgradeText = `Checks whether the nodes can be upgraded to the release of this binary, one after the other
while the cluster serves: run it with the new binary, before the first node and before each
further one. It changes nothing. Exit code 1 if something is in the way, with what it is.

To upgrade, stop a node, start the new binary on its data, and wait until the cluster is healthy
(docs/operations.md, Upgrade).`

func upgradeCommand() *cobra.Command {
	c := cli.NewCommand("upgrade", "check whether the nodes can be upgraded to this binary; exit code 1 if not", "", upgradeText, "tarry cluster upgrade --check", 0, 0)
	check := c.Flags.Bool("check", false, "check, and change nothing; the command does nothing else")
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		if !*check {
			return cli.Usagef("needs --check: nodes are upgraded by starting a new binary on their data (docs/operations.md, Upgrade)")
		}
		r, h, err := askVersions(ctx, t)
		if err != nil {
			return err
		}
		r.Blockers = blockersOf(&r, &h)
		ready := len(r.Blockers) == 0
		r.Ready = &ready
		if t.JSON {
			err = t.PrintJSON(r)
		} else {
			err = printUpgrade(t, &r)
		}
		if err == nil && !ready {
			return errors.New("not now: " + strings.Join(r.Blockers, "; "))
		}
		return err
	})
}

// askVersions asks the cluster, and each member for what only it knows.
func askVersions(ctx context.Context, t *cli.Terminal) (r versionReport, h client.Health, err error) {
	members, err := t.Client.Cluster().Members(ctx)
	if err != nil {
		return r, h, err
	}
	if h, err = t.Client.Cluster().Health(ctx); err != nil {
		return r, h, err
	}
	r = versionReport{ClusterVersion: h.ClusterVersion, WaitsFor: h.Upgrade, Binary: binaryVersion(), Nodes: make([]nodeVersion, len(members))}
	var asking sync.WaitGroup
	highest := h.ClusterVersion
	for i, m := range members {
		r.Nodes[i] = nodeVersion{ID: m.ID, Alive: m.Alive, Release: m.Version, ClusterVersion: m.ClusterVersion, Min: m.MinClusterVersion, Max: m.MaxClusterVersion, voter: m.Voter}
		highest = max(highest, m.MaxClusterVersion)
		asking.Go(func() { askVersion(ctx, t, m, &r.Nodes[i]) })
	}
	asking.Wait()
	if highest > h.ClusterVersion {
		r.NextVersion = h.ClusterVersion + 1
	}
	return r, h, nil
}

// askVersion adds what a member says itself, if it can be reached.
func askVersion(ctx context.Context, t *cli.Terminal, m client.Member, v *nodeVersion) {
	if m.HTTPAddress == "" || !m.Alive {
		return
	}
	c, err := nodeAt(t, addressOf(t, m))
	if err != nil {
		return
	}
	defer c.Close()
	if n, err := c.Node().Info(ctx); err == nil && n.ID == m.ID {
		v.Revision, v.StoreFormat, v.WireVersion = n.Revision, n.StoreFormat, n.WireVersion
	}
}

// blockersOf lists what keeps a node from being stopped and started with this binary.
func blockersOf(r *versionReport, h *client.Health) (list []string) {
	voters := 0
	for _, n := range r.Nodes {
		if n.voter {
			voters++
		}
		if !n.Alive {
			list = append(list, n.ID+" is down: start it, or remove it if it is gone for good")
		}
		if n.WireVersion != 0 && n.WireVersion != r.Binary.WireVersion {
			list = append(list, fmt.Sprintf("%s has wire version %d and this binary %d: they refuse each other, so all nodes must be stopped before the first is started anew", n.ID, n.WireVersion, r.Binary.WireVersion))
		}
		if n.StoreFormat != 0 && n.StoreFormat != r.Binary.StoreFormat {
			list = append(list, fmt.Sprintf("%s has a state of format %d, and this binary opens only format %d", n.ID, n.StoreFormat, r.Binary.StoreFormat))
		}
	}
	if v := (job.Versions{Min: r.Binary.Min, Max: r.Binary.Max}); v.Check(r.ClusterVersion) != nil {
		list = append(list, fmt.Sprintf("the cluster has version %d, and this binary runs only %s", r.ClusterVersion, v))
	}
	if !h.Healthy {
		list = append(list, "the cluster is not healthy: "+whyUnhealthy(h))
	}
	if h.FailureTolerance == 0 && voters > 2 {
		list = append(list, "no voter may be stopped now: a majority would be lost")
	}
	return list
}

func printVersions(t *cli.Terminal, r *versionReport) error {
	rows := make([][]string, 0, len(r.Nodes)+1)
	add := func(name string, n *nodeVersion) {
		rows = append(rows, []string{name, cli.Dash(n.Release), cli.Dash(n.Revision), versions(n.ClusterVersion, n.ClusterVersion), versions(n.Min, n.Max), orDash(n.StoreFormat), orDash(n.WireVersion)})
	}
	for i := range r.Nodes {
		add(r.Nodes[i].ID, &r.Nodes[i])
	}
	add("(this binary)", &r.Binary)
	return errors.Join(
		t.Table([]string{"ID", "RELEASE", "REVISION", "CLUSTER VERSION", "CAN RUN", "STORE FORMAT", "WIRE VERSION"}, rows),
		t.Out.Line("cluster version: %d", r.ClusterVersion),
		t.Out.Line("next: %s", r.next()),
	)
}

// next is what happens to the cluster version next, in words.
func (r *versionReport) next() string {
	switch {
	case r.NextVersion == 0 && r.Binary.Max > r.ClusterVersion:
		return fmt.Sprintf("none with the releases that the nodes run; this binary runs up to %d", r.Binary.Max)
	case r.NextVersion == 0:
		return "none; no node runs a higher version"
	case r.WaitsFor != "":
		return r.WaitsFor
	}
	return fmt.Sprintf("the leader raises it to %d within seconds; older releases cannot run the data after that", r.NextVersion)
}

func orDash(n uint32) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatUint(uint64(n), 10)
}

func printUpgrade(t *cli.Terminal, r *versionReport) error {
	err := printVersions(t, r)
	if !*r.Ready {
		return err
	}
	after := fmt.Sprintf("the cluster version stays %d", r.ClusterVersion)
	if r.Binary.Max > r.ClusterVersion {
		after = fmt.Sprintf("when the last node runs it, the leader raises the cluster version to %d, and there is no way back; start one node with --hold-version to prevent that", r.ClusterVersion+1)
	}
	return errors.Join(err, t.Out.Line("ready: the nodes can be upgraded to %s one by one; %s", r.Binary.Release, after))
}
