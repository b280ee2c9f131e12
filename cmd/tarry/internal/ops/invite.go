package ops

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
	"tarry/job"
)

// planAdmission says what tarry cluster admission would change.
func planAdmission(ctx context.Context, t *cli.Terminal, args []string) (string, error) {
	if err := checkAdmission(args); err != nil {
		return "", err
	}
	now, err := t.Client.Cluster().Admission(ctx)
	if err != nil || len(args) == 0 || args[0] == now {
		return "admission is " + now, err
	}
	return fmt.Sprintf("admission would change from %s to %s", now, args[0]), nil
}

// planInvite says what tarry cluster invite would do; no node is any node.
func planInvite(ctx context.Context, t *cli.Terminal, node string, lasts time.Duration) (string, error) {
	members, err := t.Client.Cluster().Members(ctx)
	if err != nil {
		return "", err
	}
	if m, ok := memberOf(members, node); ok && m.Alive {
		return fmt.Sprintf("it would be refused, because %s is a member and alive, and needs no invitation", node), nil
	}
	if node == "" {
		node = "any one node"
	}
	return fmt.Sprintf("an invitation for %s would be made, which ends after %s", node, lasts), nil
}

// planUninvite says what tarry cluster uninvite would do.
func planUninvite(ctx context.Context, t *cli.Terminal, args []string) (string, error) {
	list, err := t.Client.Cluster().Invitations(ctx)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(list, func(v client.Invitation) bool { return v.ID == args[0] })
	switch {
	case i < 0:
		return "", &client.Error{Code: client.CodeNotFound, Message: fmt.Sprintf("there is no invitation %q; see tarry cluster invitations", args[0])}
	case list[i].UsedBy != "":
		return fmt.Sprintf("the invitation %s would be deleted; %s has used it and would stay a member", args[0], list[i].UsedBy), nil
	}
	return fmt.Sprintf("the invitation %s, which is %s, would be revoked", args[0], invitationState(list[i])), nil
}

const admissionText = `Shows or sets what a node needs to become a member:
  open     no more than to find the cluster, by gossip
  invited  a certificate of the cluster, where --cluster-tls-mode is require; elsewhere an
           invitation (tarry cluster invite)
Nodes that are members stay members.`

func admissionCommand() *cobra.Command {
	c := cli.NewCommand("admission", "show or set what a node needs to become a member", "[open|invited]", admissionText, "tarry cluster admission invited", 0, 1)
	c.Plans(planAdmission)
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) (err error) {
		var shown struct {
			Admission string `json:"admission"`
		}
		if len(args) == 1 {
			if err := checkAdmission(args); err != nil {
				return err
			}
			shown.Admission, err = args[0], t.Client.Cluster().SetAdmission(ctx, args[0])
		} else {
			shown.Admission, err = t.Client.Cluster().Admission(ctx)
		}
		switch {
		case err != nil:
			return err
		case t.JSON:
			return t.PrintJSON(shown)
		}
		return t.Out.Line("admission: %s", shown.Admission)
	})
}

// checkAdmission refuses an admission that there is not; none is the question which it is.
func checkAdmission(args []string) error {
	if len(args) == 1 && args[0] != client.AdmissionOpen && args[0] != client.AdmissionInvited {
		return cli.Usagef("the admission is %q; it takes %s or %s", args[0], client.AdmissionOpen, client.AdmissionInvited)
	}
	return nil
}

const inviteText = `Makes an invitation, with which one node may become a member, and prints its text this once.
Put the text into a file that only the user of the node can read, and start the node with
--join and --join-invitation-file. The text does not leave that node again: it signs what
the leader asks. It is used up by the first server that joins with it.`

func inviteCommand() *cobra.Command {
	c := cli.NewCommand("invite", "make an invitation for one node to join", "", inviteText, "tarry cluster invite --node n4 -o n4.invitation", 0, 0)
	node := c.Flags.String("node", "", "`name` of the node that may use it (its --node-id); any node by default")
	lasts := cli.Duration{Value: time.Hour}
	c.Flags.Var(&lasts, "expires-in", "`time` after which it ends, up to 30d")
	var file secretFile
	file.register(c, "invitation")
	checkTime := func() error {
		if lasts.Value < time.Second || lasts.Value > job.MaxInvitationTime {
			return cli.Usagef("--expires-in takes a time from 1s to 30d")
		}
		return nil
	}
	c.Plans(func(ctx context.Context, t *cli.Terminal, _ []string) (string, error) {
		if err := checkTime(); err != nil {
			return "", err
		}
		return planInvite(ctx, t, *node, lasts.Value)
	})
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		if err := checkTime(); err != nil {
			return err
		}
		var made client.Invited
		return makeSecret(t, &file, "invitation made", &made, func() (text *string, err error) {
			made, err = t.Client.Cluster().Invite(ctx, *node, lasts.Value)
			return &made.Invitation, err
		})
	})
}

func invitationsCommand() *cobra.Command {
	c := cli.NewCommand("invitations", "list the invitations", "", "Lists the invitations, those that were used among them, without their texts. One that has\nended is listed until the next one is made.", "tarry cluster invitations", 0, 0)
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		list, err := t.Client.Cluster().Invitations(ctx)
		if err != nil {
			return err
		}
		return cli.PrintAll(t, list, []string{"ID", "NODE", "STATE", "ENDS", "USED BY"}, func(v client.Invitation) []string {
			node := v.Node
			if node == "" {
				node = "any"
			}
			return []string{v.ID, node, invitationState(v), t.When(v.ExpiresAt), cli.Dash(v.UsedBy)}
		})
	})
}

func invitationState(v client.Invitation) string {
	switch {
	case v.UsedBy != "":
		return "used"
	case v.Expired:
		return "expired"
	}
	return "valid"
}

func uninviteCommand() *cobra.Command {
	c := cli.NewCommand("uninvite", "revoke an invitation", "ID", "Revokes an invitation at once. A node that has used it stays a member.", "tarry cluster uninvite 1f2e3d4c", 1, 1)
	c.Plans(planUninvite)
	return cli.Operate(c, false, "revoked", func(ctx context.Context, cl *client.Client, args []string) error {
		return cl.Cluster().Uninvite(ctx, args[0])
	})
}
