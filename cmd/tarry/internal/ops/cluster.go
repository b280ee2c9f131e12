// Package ops has the commands of operators: the cluster and its nodes, tokens, namespaces, keys and
// certificates, and what finds faults.
package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

func ClusterCommand() *cobra.Command {
	return cli.Group("cluster", "members, health, events, version, drain, remove and others", "Shows and changes the nodes of a cluster.",
		membersCommand(), healthCommand(), eventsCommand(), clusterVersionCommand(), upgradeCommand(), clockCommand(), verifyCommand(), drainCommand(),
		joinCommand(), leaveCommand(), replaceCommand(), removeCommand(), removedCommand(), admitCommand(), transferCommand(),
		admissionCommand(), inviteCommand(), invitationsCommand(), uninviteCommand(), logLevelCommand())
}

func membersCommand() *cobra.Command {
	c := cli.NewCommand("members", "list the nodes and how they keep up", "", "Lists the nodes of the cluster and how they keep up with the leader: BEHIND counts the log\nentries that a node has yet to apply. CLUSTER VERSION is that of the node's state, CAN RUN\nthe cluster versions that its release runs (docs/operations.md, Upgrade). ROLE says if it is\ndrained. VOTER is never for a node that was started with --non-voter. The line below\nthem says what a node needs to become a member.", "tarry cluster members", 0, 0)
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		members, err := t.Client.Cluster().Members(ctx)
		if err != nil {
			return err
		}
		if len(members) == 0 {
			t.Notes.Line("%s: the node is in no cluster yet; its log says what it waits for", c.Path())
		}
		err = cli.PrintAll(t, members, []string{"ID", "ROLE", "VOTER", "ALIVE", "BEHIND", "HTTP ADDRESS", "CLUSTER ADDRESS", "RELEASE", "CLUSTER VERSION", "CAN RUN"}, func(m client.Member) []string {
			return []string{m.ID, roleOf(m), vote(m), cli.Yes(m.Alive), cli.Count(m.Lag), cli.Dash(m.HTTPAddress), m.Address, cli.Dash(m.Version), versions(m.ClusterVersion, m.ClusterVersion), versions(m.MinClusterVersion, m.MaxClusterVersion)}
		})
		if err != nil || t.JSON || len(members) == 0 || members[0].Admission == "" {
			return err
		}
		return t.Out.Line("admission: %s", members[0].Admission)
	})
}

// versions writes a range of cluster versions.
func versions(low, high uint32) string {
	switch {
	case high == 0:
		return "-"
	case low == high:
		return strconv.FormatUint(uint64(high), 10)
	}
	return fmt.Sprintf("%d-%d", low, high)
}

// roleOf returns what the list of members shows of a member's role.
func roleOf(m client.Member) string {
	if m.Draining {
		return m.Role + ", drained"
	}
	return m.Role
}

// vote returns what the list of members shows of a member's vote: yes, no or never.
func vote(m client.Member) string {
	if m.NonVoter && !m.Voter {
		return "never"
	}
	return cli.Yes(m.Voter)
}

func verifyCommand() *cobra.Command {
	c := cli.NewCommand("verify", "compare the states of all nodes; exit code 1 if they differ", "", "Compares the states of all nodes at one index of the log. Exit code 1 if one differs or\ndoes not answer.",
		"tarry cluster verify", 0, 0)
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		v, err := t.Client.Cluster().Verify(ctx)
		if err != nil {
			return err
		}
		if t.JSON {
			err = t.PrintJSON(v)
		} else {
			err = printVerification(t, v)
		}
		if err == nil && !v.Equal {
			return errors.New("the nodes' states are not all known to be equal")
		}
		return err
	})
}

func printVerification(t *cli.Terminal, v client.Verification) error {
	var rows [][]string
	for _, d := range v.Digests {
		rows = append(rows, []string{d.ID, cli.Dash(d.Digest), cli.Dash(d.Error)})
	}
	if err := t.Table([]string{"ID", "DIGEST", "ERROR"}, rows); err != nil {
		return err
	}
	return t.Out.Line("equal at index %d: %s", v.Index, cli.Yes(v.Equal))
}

func joinCommand() *cobra.Command {
	c := cli.NewCommand("join", "make a node join a cluster", "ADDRESS...", "Makes the node at --addr join the cluster of the nodes that gossip at the addresses (host:port).",
		"tarry cluster join --addr n4:7300 n1:7302 n2:7302", 1, 100)
	c.Plans(planJoin)
	return cli.Operate(c, true, "joined", func(ctx context.Context, cl *client.Client, args []string) error {
		return cl.Node().Join(ctx, args)
	})
}

func leaveCommand() *cobra.Command {
	c := cli.NewCommand("leave", "make a node leave its cluster and stop", "", "Makes the node at --addr leave its cluster for good and stop. It asks before. The node cannot\njoin again before \"tarry cluster admit\".", "tarry cluster leave --addr n4:7300", 0, 0)
	c.Asks(func(ctx context.Context, t *cli.Terminal, _ []string) (string, error) {
		members, err := t.Client.Cluster().Members(ctx)
		warning := ""
		if about, err := t.Client.Node().Info(ctx); err == nil {
			warning = warnOfOneVoter(members, about.ID)
		}
		return fmt.Sprintf("Make %s leave its cluster of %s for good, and stop?%s", t.Nodes[0], nodesOf(len(members)), warning), err
	})
	return cli.Operate(c, true, "left", func(ctx context.Context, cl *client.Client, _ []string) error {
		return cl.Node().Leave(ctx)
	})
}

const removeText = `Removes a node from the cluster for good. It is refused when the quorum would
not hold. It asks before. The node cannot join again, not even with an empty data
directory and a valid certificate, before "tarry cluster admit".`

func removeCommand() *cobra.Command {
	c := cli.NewCommand("remove", "remove a node from the cluster for good", "ID", removeText,
		"tarry cluster remove n3", 1, 1)
	c.Asks(func(ctx context.Context, t *cli.Terminal, args []string) (string, error) {
		members, err := t.Client.Cluster().Members(ctx)
		if _, ok := memberOf(members, args[0]); err == nil && !ok {
			return "", noMember(args[0])
		}
		return fmt.Sprintf("Remove %s from the cluster of %s for good?%s", args[0], nodesOf(len(members)), warnOfOneVoter(members, args[0])), err
	})
	return cli.Operate(c, false, "removed", func(ctx context.Context, cl *client.Client, args []string) error {
		return cl.Cluster().RemoveMember(ctx, args[0])
	})
}

func removedCommand() *cobra.Command {
	c := cli.NewCommand("removed", "list the nodes that were removed and must not join again", "", "Lists the nodes that were removed from the cluster, or have left it, and cannot join again\nbefore \"tarry cluster admit\".", "tarry cluster removed", 0, 0)
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		removed, err := t.Client.Cluster().Removed(ctx)
		if err != nil {
			return err
		}
		return cli.PrintAll(t, removed, []string{"ID", "REMOVED"}, func(n client.RemovedNode) []string {
			return []string{n.ID, n.RemovedAt.Format(time.RFC3339)}
		})
	})
}

const admitText = `Lets a node that was removed from the cluster, or has left it, join again. Then move its
data directory away and start it with --join: it becomes a new member.`

func admitCommand() *cobra.Command {
	c := cli.NewCommand("admit", "let a node that was removed join again", "ID", admitText, "tarry cluster admit n3", 1, 1)
	c.Plans(planAdmit)
	return cli.Operate(c, false, "admitted", func(ctx context.Context, cl *client.Client, args []string) error {
		return cl.Cluster().Admit(ctx, args[0])
	})
}

// warnOfOneVoter says what a removal means that leaves one voter.
func warnOfOneVoter(members []client.Member, id string) string {
	var left []string
	for _, m := range members {
		if m.Voter && m.ID != id {
			left = append(left, m.ID)
		}
	}
	if len(left) != 1 {
		return ""
	}
	return fmt.Sprintf(" %s will be the only voter: if its disk is lost, all jobs are lost, and while it restarts nothing is served.", left[0])
}

func nodesOf(n int) string {
	if n == 1 {
		return "1 node"
	}
	return strconv.Itoa(n) + " nodes"
}

// planJoin says what tarry cluster join would do.
func planJoin(ctx context.Context, t *cli.Terminal, args []string) (string, error) {
	if err := t.NeedsOneNode(); err != nil {
		return "", err
	}
	node, err := t.Client.Node().Info(ctx)
	if err != nil {
		return "", err
	}
	members, err := t.Client.Cluster().Members(ctx)
	if err != nil {
		return "", err
	}
	others := strings.Join(args, ", ")
	if len(members) > 0 {
		return fmt.Sprintf("%s is a member of a cluster of %s; it would gossip with %s, and be refused if they belong to another cluster", node.ID, nodesOf(len(members)), others), nil
	}
	return fmt.Sprintf("%s would gossip with %s, and the leader there would make it a member if admission allows it", node.ID, others), nil
}

// planAdmit says what tarry cluster admit would do.
func planAdmit(ctx context.Context, t *cli.Terminal, args []string) (string, error) {
	removed, err := t.Client.Cluster().Removed(ctx)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(removed, func(n client.RemovedNode) bool { return n.ID == args[0] }) {
		return fmt.Sprintf("%s is not among the removed nodes, so nothing keeps it from joining", args[0]), nil
	}
	return args[0] + " could join again", nil
}
