package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/job"
)

const admissionText = `Shows or sets what a node needs to become a member:
  open     no more than to find the cluster, by gossip
  invited  a certificate of the cluster, where --cluster-tls-mode is require; elsewhere an
           invitation (tarry cluster invite)
Nodes that are members stay members.`

func admissionCommand() *cobra.Command {
	c := newCommand("admission", "show or set what a node needs to become a member", "[open|invited]", admissionText, "tarry cluster admission invited", 0, 1)
	c.plans(planAdmission)
	return c.does(func(ctx context.Context, t *terminal, args []string) (err error) {
		var shown struct {
			Admission string `json:"admission"`
		}
		if len(args) == 1 {
			if err := checkAdmission(args); err != nil {
				return err
			}
			shown.Admission, err = args[0], t.client.Cluster().SetAdmission(ctx, args[0])
		} else {
			shown.Admission, err = t.client.Cluster().Admission(ctx)
		}
		switch {
		case err != nil:
			return err
		case t.json:
			return t.printJSON(shown)
		}
		return t.out.line("admission: %s", shown.Admission)
	})
}

// checkAdmission refuses an admission that there is not; none is the question which it is.
func checkAdmission(args []string) error {
	if len(args) == 1 && args[0] != client.AdmissionOpen && args[0] != client.AdmissionInvited {
		return usagef("the admission is %q; it takes %s or %s", args[0], client.AdmissionOpen, client.AdmissionInvited)
	}
	return nil
}

const inviteText = `Makes an invitation, with which one node may become a member, and prints its text this once.
Put the text into a file that only the user of the node can read, and start the node with
--join and --join-invitation-file. The text does not leave that node again: it signs what
the leader asks. It is used up by the first server that joins with it.`

func inviteCommand() *cobra.Command {
	c := newCommand("invite", "make an invitation for one node to join", "", inviteText, "tarry cluster invite --node n4 -o n4.invitation", 0, 0)
	node := c.flags.String("node", "", "`name` of the node that may use it (its --node-id); any node by default")
	lasts := duration{d: time.Hour}
	c.flags.Var(&lasts, "expires-in", "`time` after which it ends, up to 30d")
	var file secretFile
	file.register(c, "invitation")
	checkTime := func() error {
		if lasts.d < time.Second || lasts.d > job.MaxInvitationTime {
			return usagef("--expires-in takes a time from 1s to 30d")
		}
		return nil
	}
	c.plans(func(ctx context.Context, t *terminal, _ []string) (string, error) {
		if err := checkTime(); err != nil {
			return "", err
		}
		return planInvite(ctx, t, *node, lasts.d)
	})
	return c.does(func(ctx context.Context, t *terminal, _ []string) error {
		if err := checkTime(); err != nil {
			return err
		}
		var made client.Invited
		return t.makeSecret(&file, "invitation made", &made, func() (text *string, err error) {
			made, err = t.client.Cluster().Invite(ctx, *node, lasts.d)
			return &made.Invitation, err
		})
	})
}

func invitationsCommand() *cobra.Command {
	c := newCommand("invitations", "list the invitations", "", "Lists the invitations, those that were used among them, without their texts. One that has\nended is listed until the next one is made.", "tarry cluster invitations", 0, 0)
	return c.does(func(ctx context.Context, t *terminal, _ []string) error {
		list, err := t.client.Cluster().Invitations(ctx)
		if err != nil {
			return err
		}
		return printAll(t, list, []string{"ID", "NODE", "STATE", "ENDS", "USED BY"}, func(v client.Invitation) []string {
			node := v.Node
			if node == "" {
				node = "any"
			}
			return []string{v.ID, node, invitationState(v), t.when(v.ExpiresAt), dash(v.UsedBy)}
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
	c := newCommand("uninvite", "revoke an invitation", "ID", "Revokes an invitation at once. A node that has used it stays a member.", "tarry cluster uninvite 1f2e3d4c", 1, 1)
	c.plans(planUninvite)
	return operate(c, false, "revoked", func(ctx context.Context, cl *client.Client, args []string) error {
		return cl.Cluster().Uninvite(ctx, args[0])
	})
}
