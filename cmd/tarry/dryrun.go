package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tarry/client"
)

// plan says what a command would do; it changes nothing.
type plan func(ctx context.Context, t *terminal, args []string) (string, error)

// plans adds --dry-run, with which the command prints its plan instead of doing it.
func (c *clientCommand) plans(p plan) {
	c.plan, c.dry = p, c.flags.Bool("dry-run", false, "say what would be done, and change nothing")
}

// printPlan prints what a command would do.
func (t *terminal) printPlan(ctx context.Context, p plan, args []string) error {
	text, err := p(ctx, t, args)
	if err != nil {
		return err
	}
	if t.json {
		return t.printJSON(struct {
			DryRun bool   `json:"dry_run"`
			Plan   string `json:"plan"`
		}{true, text})
	}
	return t.out.line("nothing was done: %s", text)
}

// planJoin says what tarry cluster join would do.
func planJoin(ctx context.Context, t *terminal, args []string) (string, error) {
	if err := t.needsOneNode(); err != nil {
		return "", err
	}
	node, err := t.client.Node().Info(ctx)
	if err != nil {
		return "", err
	}
	members, err := t.client.Cluster().Members(ctx)
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
func planAdmit(ctx context.Context, t *terminal, args []string) (string, error) {
	removed, err := t.client.Cluster().Removed(ctx)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(removed, func(n client.RemovedNode) bool { return n.ID == args[0] }) {
		return fmt.Sprintf("%s is not among the removed nodes, so nothing keeps it from joining", args[0]), nil
	}
	return args[0] + " could join again", nil
}

// planAdmission says what tarry cluster admission would change.
func planAdmission(ctx context.Context, t *terminal, args []string) (string, error) {
	if err := checkAdmission(args); err != nil {
		return "", err
	}
	now, err := t.client.Cluster().Admission(ctx)
	if err != nil || len(args) == 0 || args[0] == now {
		return "admission is " + now, err
	}
	return fmt.Sprintf("admission would change from %s to %s", now, args[0]), nil
}

// planLogLevel says what tarry cluster log-level would change.
func planLogLevel(ctx context.Context, t *terminal, args []string) (string, error) {
	now, err := t.logLevel(ctx)
	if err != nil || len(args) == 0 || args[0] == now {
		return "the log level is " + now, err
	}
	return fmt.Sprintf("the log level would change from %s to %s", now, args[0]), nil
}

// planInvite says what tarry cluster invite would do; no node is any node.
func planInvite(ctx context.Context, t *terminal, node string, lasts time.Duration) (string, error) {
	members, err := t.client.Cluster().Members(ctx)
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
func planUninvite(ctx context.Context, t *terminal, args []string) (string, error) {
	list, err := t.client.Cluster().Invitations(ctx)
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

// planClockReset says what tarry cluster clock reset would do.
func planClockReset(ctx context.Context, t *terminal, _ []string) (string, error) {
	v, err := t.client.Cluster().Clocks(ctx)
	switch {
	case err != nil:
		return "", err
	case !v.Agreed:
		return "it would be refused, because no majority of the voters' clocks agrees", nil
	case v.ClusterAhead <= v.MaxOffset:
		return fmt.Sprintf("it would be refused, because the queue's clock is %s the majority's, and only more than %g s are set back", aheadOf(v.ClusterAhead), v.MaxOffset), nil
	}
	return fmt.Sprintf("the queue's clock, which is %s the majority's, would be set back to it", aheadOf(v.ClusterAhead)), nil
}
