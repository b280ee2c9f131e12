package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

const drainText = `Prepares a node to be stopped without any client noticing: leadership moves to another node and
stays away, /readyz returns 503, waiting reserves and streams end, and new ones are refused, so
that clients and load balancers use other nodes. It stays a member, votes, and forwards the
calls that it still gets. It names a node by its id, or the one at --addr.

Without --force it is refused where stopping the node would leave no majority of the voters, because
others are down or drained.

The drain ends with --undo or when the node restarts. Repeating it changes nothing.`

func drainCommand() *cobra.Command {
	c := cli.NewCommand("drain", "move leadership and clients away from a node, before you stop it", "[NODE]", drainText, "tarry cluster drain n2", 0, 1)
	undo := c.Flags.Bool("undo", false, "let the node serve and lead again")
	force := c.Flags.Bool("force", false, "drain it also where stopping it would leave no majority")
	dry := c.Flags.Bool("dry-run", false, "say what would be done, and change nothing")
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		members, err := t.Client.Cluster().Members(ctx)
		if err != nil {
			return err
		}
		node, err := oneNode(t, members, args)
		if err != nil {
			return err
		}
		cl, err := t.Dial([]string{node}, c.Patience.Value)
		if err != nil {
			return cli.Usagef("--addr: %w", err)
		}
		defer cl.Close()
		about, err := cl.Node().Info(ctx)
		if err != nil {
			return err
		}
		loss := ""
		if !*undo {
			loss = majorityLoss(members, about.ID)
		}
		if *dry {
			return printDrain(t, drainReply{Node: about.ID, Draining: about.Draining, DryRun: true}, drainPlan(members, about, *undo, loss))
		}
		if loss != "" && !*force {
			return errors.New(loss + ". Nothing was done; --force drains it nevertheless")
		}
		late := time.AfterFunc(cli.QuietTime, func() { t.Notes.Line("%s: waiting until another node leads", c.Path()) })
		defer late.Stop()
		if *undo {
			err = cl.Node().Undrain(ctx)
		} else {
			err = cl.Node().Drain(ctx)
		}
		if err != nil {
			return err
		}
		done := about.ID + " is drained: it does not lead and is not ready. It can be stopped; tarry cluster drain --undo ends the drain"
		switch {
		case *undo:
			done = about.ID + " is not drained: it serves, and may lead"
		case loss != "":
			done = about.ID + " is drained: it does not lead and is not ready. Do not stop it yet: " + loss + ". tarry cluster drain --undo ends the drain"
		}
		return printDrain(t, drainReply{Node: about.ID, Draining: !*undo}, done)
	})
}

// drainReply is the output of drain --json.
type drainReply struct {
	Node     string `json:"node"`
	Draining bool   `json:"draining"`
	DryRun   bool   `json:"dry_run,omitzero"`
}

func printDrain(t *cli.Terminal, r drainReply, text string) error {
	if t.JSON {
		return t.PrintJSON(r)
	}
	return t.Out.Line("%s", text)
}

// oneNode is the address of the node that the argument names by its id, or that of --addr.
func oneNode(t *cli.Terminal, members []client.Member, args []string) (string, error) {
	if len(args) == 0 {
		if len(t.Nodes) != 1 {
			return "", cli.Usagef("acts on one node, and --addr (or %s) names %d; name one by its id", cli.AddrEnv, len(t.Nodes))
		}
		return t.Nodes[0], nil
	}
	m, ok := memberOf(members, args[0])
	switch {
	case !ok:
		return "", noMember(args[0])
	case m.HTTPAddress == "":
		return "", fmt.Errorf("the HTTP address of %s is not known, as it is down; name it with --addr", m.ID)
	}
	return addressOf(t, m), nil
}

// majorityLoss says what is left when a node stops, if that is no majority of the voters that leads
// and serves; empty: it is one, or the node is the only voter.
func majorityLoss(members []client.Member, node string) string {
	voters, left := 0, 0
	var others []string
	for _, m := range members {
		switch {
		case !m.Voter && m.ID == node:
			return ""
		case !m.Voter:
			continue
		case m.ID == node:
		case !m.Alive:
			others = append(others, m.ID+" is down")
		case m.Draining:
			others = append(others, m.ID+" is drained")
		default:
			left++
		}
		voters++
	}
	if voters == 1 || left > voters/2 {
		return ""
	}
	return fmt.Sprintf("stopping %s would leave %d of %d voters that serve, which is no majority: %s", node, left, voters, cmp.Or(strings.Join(others, ", "), "there is no third"))
}

func drainPlan(members []client.Member, about client.NodeInfo, undo bool, loss string) string {
	if undo {
		if !about.Draining {
			return "nothing was done: " + about.ID + " is not drained"
		}
		return "nothing was done: " + about.ID + " would serve again, and might lead"
	}
	plan := "nothing was done: " + about.ID + " would be drained"
	if m, _ := memberOf(members, about.ID); m.Role == "leader" {
		plan += ", and leadership would move to another node"
	}
	if about.Draining {
		plan = "nothing was done: " + about.ID + " is drained already"
	}
	if loss != "" {
		plan += "; it needs --force: " + loss
	}
	return plan
}
