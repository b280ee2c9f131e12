package archive

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"tarry/cluster/recovery"
	"tarry/cmd/tarry/internal/cli"
)

const recoverPeersText = `Makes a peers file of what tarry recover --json printed on each node that is left of a cluster
whose majority is lost for good, and prints it. Copy it to all of them, and run tarry recover
--peers on each (docs/operations.md). It is only for nodes as they are: if one of them runs in
between, make the file again.

It is refused for nodes of different clusters, and for a majority: that has lost nothing.
An address in it is --cluster-addr of the node as the cluster knew it; change it if it is
another one now.`

func recoverPeersCommand() *cobra.Command {
	c := cli.NewLocal("peers", "make the file for tarry recover --peers", "FILE FILE...", recoverPeersText, "tarry recover peers n4.json n5.json > peers.json")
	c.Cmd.Args = func(_ *cobra.Command, given []string) error {
		if len(given) < 2 {
			return cli.Usagef("takes the files of two nodes or more; %d given. A single node is recovered with --as-only-voter", len(given))
		}
		return nil
	}
	return c.Does(func(_ context.Context, args []string) error {
		var nodes []recovery.Held
		for _, file := range args {
			h, err := readHeld(file)
			if err != nil {
				return err
			}
			nodes = append(nodes, h)
		}
		peers, err := recovery.NewPeers(nodes)
		if err != nil {
			return err
		}
		text, err := peers.Encode()
		if err != nil {
			return err
		}
		return c.Out.Raw(text)
	})
}

// readHeld reads what recover --json printed.
func readHeld(file string) (h recovery.Held, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return h, err
	}
	var in heldJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return h, fmt.Errorf("%s is not what tarry recover --json prints: %w", file, err)
	}
	h = recovery.Held{
		NodeID: in.NodeID, ServerID: in.ServerID, ClusterID: in.ClusterID, AppliedIndex: in.AppliedIndex,
		LastIndex: in.LastIndex, LastTerm: in.LastTerm, VoteTerm: in.VoteTerm, Interrupted: in.Interrupted,
	}
	for _, m := range in.Members {
		h.Members = append(h.Members, recovery.Member(m))
	}
	return h, nil
}

// recoverPeers makes a stopped node one of several voters.
func recoverPeers(ctx context.Context, c *cli.LocalCommand, dir, file string, yes, dry bool) error {
	peers, err := readPeersFile(file)
	if err != nil {
		return err
	}
	held, err := recovery.Inspect(dir)
	if err != nil {
		return err
	}
	if err := peers.CheckNode(&held); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if dry {
		say := c.Out
		if c.JSON {
			say = c.Notes.Printer
		}
		return errors.Join(printHeld(c, &held, false), say.Line("nothing was done: %s", peersOutcome(&held, peers)))
	}
	t := &cli.Terminal{In: c.In, Out: c.Out, Notes: c.Notes}
	err = t.Confirm(ctx, yes, func(context.Context, *cli.Terminal, []string) (string, error) {
		return peersOutcome(&held, peers) + "\nAll other members of the old cluster must be stopped, for good. Recover this node?", nil
	}, nil)
	if err != nil {
		return err
	}
	done, err := recovery.RecoverPeers(ctx, dir, peers)
	if err != nil {
		return fmt.Errorf("the recovery is not complete; run the command again: %w", err)
	}
	if c.JSON {
		return printRecovered(c, dir, &done)
	}
	return errors.Join(
		c.Out.Line("%s is recovered: a voter of the new cluster %s as soon as the nodes of the file run", held.NodeID, done.ClusterID),
		printCounts(c, &done.Counts),
		c.Out.Line("start it when all nodes of the file are recovered: tarry server --data-dir %s --node-id %s, with its addresses as before", dir, held.NodeID),
	)
}

func readPeersFile(path string) (*recovery.Peers, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := recovery.ReadPeers(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// peersOutcome says what a recovery makes of a node.
func peersOutcome(h *recovery.Held, p *recovery.Peers) string {
	if p.Source() == h.ServerID {
		return fmt.Sprintf("%s has most of the %d nodes of the file: it keeps everything up to index %d, and the others get what they lack from it. %s", h.NodeID, len(p.Nodes), h.LastIndex, mayBeLost(h))
	}
	return fmt.Sprintf("%s gets what it lacks from %s, which has most of the %d nodes of the file; what only %s has was never committed, and is dropped", h.NodeID, p.Source(), len(p.Nodes), h.NodeID)
}
