package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tarry/cluster/recovery"
	"tarry/cmd/tarry/internal/cli"
)

const recoverText = `Shows what a stopped node has on its disk: the end of its log, the members that it knew and
its jobs. With --as-only-voter it makes the node the only voter of a new cluster, with all
that it has, for a cluster whose majority is lost for good (docs/operations.md). It asks first.

If several nodes are left, all of them can be voters at once: collect what each prints with
--json, make a peers file of that with tarry recover peers, and give it to each node with
--peers. The node that has most is the one from which the others get what they lack.

The new cluster has an id of its own, so the lost nodes cannot vote or join with their old
data. Writes that were acknowledged by the lost nodes and never reached this one are lost;
writes that were never acknowledged may appear. Compare all nodes that are left, and take the
one with the largest LAST TERM, and of equal ones the largest LAST INDEX.

If the end of the log is damaged, the command fails. With --discard-damaged-end, too, it goes on
with what can be read (tarry check), for a node that is all that is left: what is behind it is
removed, so copy the directory before. That is for raft-wal, and only if nothing else is damaged.

A node that is the only voter of its cluster already needs no recovery, and --as-only-voter
changes nothing then; with --force it gives the cluster a new id.

Run it as the user of the node. If it is interrupted, run it again to its end: until then no
node starts in the directory.`

func RecoverCommand() *cobra.Command {
	c := cli.NewLocal("recover", "show what a stopped node has; make it the first of a new cluster", "", recoverText, "tarry recover --data-dir /var/lib/tarry --as-only-voter")
	dir := c.Flags.String("data-dir", "", "data `directory` of a stopped node")
	only := c.Flags.Bool("as-only-voter", false, "make the node the only voter of a new cluster")
	force := c.Flags.Bool("force", false, "with --as-only-voter: make a new cluster also of a node that is the only voter already")
	discard := c.Flags.Bool("discard-damaged-end", false, "with --as-only-voter: remove what is behind the last entry of a damaged log that can be read")
	peersFile := c.Flags.String("peers", "", "make the node a voter of a new cluster, with the other nodes of this `file` (tarry recover peers)")
	yes := c.Flags.BoolP("yes", "y", false, "do not ask; needed when standard input is not a terminal")
	dry := c.Flags.Bool("dry-run", false, "with --as-only-voter or --peers: say what would be done, and change nothing")
	cmd := c.Does(func(ctx context.Context, _ []string) error {
		switch {
		case *dir == "":
			return cli.Usagef("needs --data-dir, the directory of a stopped node")
		case *only && *peersFile != "":
			return cli.Usagef("takes --as-only-voter or --peers, not both")
		case !*only && *peersFile == "" && (*yes || *dry):
			return cli.Usagef("--yes and --dry-run need --as-only-voter or --peers")
		case *force && !*only:
			return cli.Usagef("--force needs --as-only-voter")
		case *discard && !*only:
			return cli.Usagef("--discard-damaged-end needs --as-only-voter")
		}
		if *peersFile != "" {
			return recoverPeers(ctx, c, *dir, *peersFile, *yes, *dry)
		}
		if *discard {
			return recoverReadable(ctx, c, *dir, *yes, *dry)
		}
		held, err := recovery.Inspect(*dir)
		if err != nil {
			return err
		}
		if *only && needsNone(&held) && !*force {
			return printNoRecovery(c, *dir, &held)
		}
		if !*only || *dry {
			return printHeld(c, &held, *only)
		}
		if err := confirmRecovery(ctx, c, &held, *yes); err != nil {
			return err
		}
		done, err := recovery.Recover(ctx, *dir)
		if err != nil {
			return fmt.Errorf("the recovery is not complete; run the command again: %w", err)
		}
		return printRecovered(c, *dir, &done)
	})
	cmd.AddCommand(recoverPeersCommand())
	return cmd
}

// heldJSON is the output of recover --json.
type heldJSON struct {
	NodeID       string       `json:"node_id"`
	ServerID     string       `json:"server_id"`
	ClusterID    string       `json:"cluster_id"`
	AppliedIndex uint64       `json:"applied_index"`
	LastIndex    uint64       `json:"last_index"`
	LastTerm     uint64       `json:"last_term"`
	VoteTerm     uint64       `json:"vote_term"`
	LastEntry    string       `json:"last_entry,omitempty"`
	QueueTime    string       `json:"queue_time,omitempty"`
	Members      []memberJSON `json:"members"`
	Jobs         uint64       `json:"jobs"` // in the state; entries of the log may change it
	Interrupted  bool         `json:"interrupted,omitempty"`
	NewClusterID string       `json:"new_cluster_id,omitempty"`
}

type memberJSON struct {
	ServerID string `json:"server_id"`
	Address  string `json:"address"`
	Voter    bool   `json:"voter"`
}

func heldOf(h *recovery.Held) heldJSON {
	out := heldJSON{
		NodeID: h.NodeID, ServerID: h.ServerID, ClusterID: h.ClusterID, AppliedIndex: h.AppliedIndex, LastIndex: h.LastIndex, LastTerm: h.LastTerm, VoteTerm: h.VoteTerm,
		LastEntry: stampOf(h.LastEntry), QueueTime: stampOf(h.QueueTime), Members: []memberJSON{}, Jobs: h.Counts.Jobs(), Interrupted: h.Interrupted,
	}
	for _, m := range h.Members {
		out.Members = append(out.Members, memberJSON(m))
	}
	return out
}

// stampOf is a timestamp; empty: the time is not known.
func stampOf(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return cli.Timestamp(at)
}

// printHeld prints what a node has, and with would what a recovery would do.
func printHeld(c *cli.LocalCommand, h *recovery.Held, would bool) error {
	if c.JSON {
		return c.PrintJSON(heldOf(h))
	}
	err := errors.Join(
		c.Out.Line("node:        %s of cluster %s", h.NodeID, cli.Dash(h.ClusterID)),
		c.Out.Line("last index:  %d (applied: %d)", h.LastIndex, h.AppliedIndex),
		c.Out.Line("last term:   %d (heard of: %d)", h.LastTerm, h.VoteTerm),
		c.Out.Line("last entry:  %s by the leader's clock; nothing is known of a leader after it", cli.Dash(stampOf(h.LastEntry))),
		c.Out.Line("queue time:  %s", cli.Dash(stampOf(h.QueueTime))),
		printCounts(c, &h.Counts),
	)
	if behind := h.LastIndex - min(h.AppliedIndex, h.LastIndex); behind > 0 {
		err = errors.Join(err, c.Out.Line("not counted: what the last %d entries of the log change, which a recovery, or the node when it starts, brings into the state", behind))
	}
	for _, m := range h.Members {
		role := "non-voter"
		if m.Voter {
			role = "voter"
		}
		err = errors.Join(err, c.Out.Line("member:      %s at %s, %s", m.ServerID, m.Address, role))
	}
	if h.Interrupted {
		err = errors.Join(err, c.Out.Line("interrupted: a recovery has begun here and not ended; no node starts here before the same tarry recover, with --as-only-voter or --peers, has run to its end"))
	}
	if would {
		err = errors.Join(err, c.Out.Line("nothing was done: %s would be the only voter of a new cluster, with everything up to index %d. %s", h.NodeID, h.LastIndex, mayBeLost(h)))
	}
	return err
}

// needsNone reports whether the node is the only voter of its cluster already, with no recovery
// to be ended: then it starts and leads as it is.
func needsNone(h *recovery.Held) bool { return h.Voter() && h.Voters() == 1 && !h.Interrupted }

func printNoRecovery(c *cli.LocalCommand, dir string, h *recovery.Held) error {
	say := c.Out
	if c.JSON {
		say = c.Notes.Printer
	}
	return errors.Join(printHeld(c, h, false),
		say.Line("nothing was done: %s is the only voter of its cluster already, so there is nothing to recover. Start it: tarry server --data-dir %s --node-id %s, with its addresses as before. (With --force it becomes a new cluster.)", h.NodeID, dir, h.NodeID))
}

// mayBeLost says what a recovery may lose.
func mayBeLost(h *recovery.Held) string {
	voters := h.Voters()
	switch {
	case voters == 0:
		return "It knows of no voter, so nobody can say what is lost"
	case !h.Voter():
		return fmt.Sprintf("It was no voter: writes were acknowledged without it, and those after index %d are lost", h.LastIndex)
	case voters == 1:
		return "Nothing is lost: it was the only voter"
	}
	return fmt.Sprintf("A write was acknowledged by %d of %d voters: those that this node was not among, after index %d, are lost", voters/2+1, voters, h.LastIndex)
}

func confirmRecovery(ctx context.Context, c *cli.LocalCommand, h *recovery.Held, yes bool) error {
	t := &cli.Terminal{In: c.In, Out: c.Out, Notes: c.Notes}
	return t.Confirm(ctx, yes, func(context.Context, *cli.Terminal, []string) (string, error) {
		others := ""
		if n := len(h.Members) - 1; n > 0 {
			others = fmt.Sprintf(" The other %d members can never come back with their data: they must be stopped, for good.", n)
		}
		return fmt.Sprintf("Node %s has everything up to index %d of term %d. %s.%s Make %s the only voter of a new cluster?",
			h.NodeID, h.LastIndex, h.LastTerm, mayBeLost(h), others, h.NodeID), nil
	}, nil)
}

// recoverReadable makes a node with a damaged log the only voter of a new cluster.
func recoverReadable(ctx context.Context, c *cli.LocalCommand, dir string, yes, dry bool) error {
	found, err := recovery.Check(dir, "")
	if err != nil {
		return err
	}
	if err := found.Readable(); err != nil {
		return fmt.Errorf("%w; nothing was done: tarry check --data-dir %s says what is damaged, and what to do", err, dir)
	}
	if dry {
		if err := printChecked(c, &found); err != nil || c.JSON {
			return err
		}
		return c.Out.Line("nothing was done: %s would be the only voter of a new cluster, with everything up to index %d. %s", found.NodeID, found.Keeps(), lostBehind(&found))
	}
	t := &cli.Terminal{In: c.In, Out: c.Out, Notes: c.Notes}
	err = t.Confirm(ctx, yes, func(context.Context, *cli.Terminal, []string) (string, error) {
		return fmt.Sprintf("The log of node %s is damaged: %v. The node has everything up to index %d. %s Remove what is behind that, and make %s the only voter of a new cluster?",
			found.NodeID, found.Problems[0].Err, found.Keeps(), lostBehind(&found), found.NodeID), nil
	}, nil)
	if err != nil {
		return err
	}
	done, err := recovery.RecoverReadable(ctx, dir)
	if err != nil {
		return fmt.Errorf("the recovery is not complete; run the command again: %w", err)
	}
	if err := printRecovered(c, dir, &done); err != nil || c.JSON || found.Log.Acknowledged <= done.Before.LastIndex {
		return err
	}
	return c.Out.Line("lost: the entries behind index %d, of which the node had acknowledged those up to index %d", done.Before.LastIndex, found.Log.Acknowledged)
}

// lostBehind says what is lost if the end of a damaged log is removed.
func lostBehind(f *recovery.CheckReport) string {
	if f.Log.Acknowledged <= f.Keeps() {
		return "No entry is lost that it is known to have acknowledged."
	}
	return fmt.Sprintf("Lost are the entries behind that, of which it has acknowledged those up to index %d.", f.Log.Acknowledged)
}

func printRecovered(c *cli.LocalCommand, dir string, done *recovery.Recovered) error {
	if c.JSON {
		out := heldOf(&done.Before)
		out.NewClusterID, out.Jobs, out.Interrupted = done.ClusterID, done.Counts.Jobs(), false
		return c.PrintJSON(out)
	}
	return errors.Join(
		c.Out.Line("%s is the only voter of the new cluster %s, with everything that it had up to index %d", done.Before.NodeID, done.ClusterID, done.Before.LastIndex),
		printCounts(c, &done.Counts),
		c.Out.Line("start it: tarry server --data-dir %s --node-id %s, with its addresses as before; then the other nodes with empty directories, with --join and without --bootstrap-expect", dir, done.Before.NodeID),
	)
}
