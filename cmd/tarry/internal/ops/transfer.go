package ops

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

func transferCommand() *cobra.Command {
	c := cli.NewCommand("transfer-leadership", "hand leadership to another node", "[ID]", "Hands leadership to the node named, or to the best follower.",
		"tarry cluster transfer-leadership n2", 0, 1)
	c.Plans(planTransfer)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		id := strings.Join(args, "")
		moved, err := t.Client.Cluster().TransferLeadership(ctx, id)
		switch {
		case err != nil:
			return err
		case t.JSON:
			return t.PrintJSON(transferReply{Success: true, Moved: moved})
		case !moved:
			return t.Out.Line("%s leads already", id)
		}
		if id != "" {
			return t.Out.Line("leadership has moved to %s", id)
		}
		return t.Out.Line("leadership has moved")
	})
}

// transferReply is the output of transfer-leadership --json.
type transferReply struct {
	Success bool `json:"success"`
	Moved   bool `json:"moved"`
}

func planTransfer(ctx context.Context, t *cli.Terminal, args []string) (string, error) {
	members, err := t.Client.Cluster().Members(ctx)
	if err != nil {
		return "", err
	}
	id := strings.Join(args, "")
	target, ok := memberOf(members, id)
	if id != "" && !ok {
		return "", noMember(id)
	}
	return transferPlan(members, target), nil
}

// transferPlan says what a transfer would do; the zero target is the best follower. The leader
// also looks at the target's clock and its log, so the transfer may be refused in spite of it.
func transferPlan(members []client.Member, target client.Member) string {
	leader := "the leader"
	if i := slices.IndexFunc(members, func(m client.Member) bool { return m.Role == "leader" }); i >= 0 {
		leader = members[i].ID
	}
	heir := func(m client.Member) bool { return m.Voter && m.Alive && m.ID != leader }
	switch {
	case target.ID == "" && !slices.ContainsFunc(members, heir):
		return "it would fail, because no other voter is alive"
	case target.ID == "":
		return "leadership would move from " + leader + " to the best follower"
	case target.ID == leader:
		return leader + " leads already"
	case !target.Voter:
		return "it would be refused, because " + target.ID + " does not vote"
	case !target.Alive:
		return "it would fail, because " + target.ID + " is not alive"
	case target.Draining:
		return "leadership would move from " + leader + " to " + target.ID + ", which is drained and gives it away again"
	}
	return "leadership would move from " + leader + " to " + target.ID
}
