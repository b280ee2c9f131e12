package ops

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

func StandbyCommand() *cobra.Command {
	return cli.Group("standby", "a second cluster that follows the first one",
		"A standby is a second cluster that follows the first, its primary, entry by entry and some\nmoments behind. It can be read, and takes over when it is promoted (docs/standby.md).",
		standbyStatusCommand(), promoteCommand())
}

const standbyStatusText = `Shows how far the standby at --addr is behind its primary, and what is lost if the primary is
lost now. Exit code 1 if the cluster is no standby, or does not follow.`

func standbyStatusCommand() *cobra.Command {
	c := cli.NewCommand("status", "show how far a standby is behind, and what would be lost", "", standbyStatusText, "tarry standby status --addr s1:7300", 0, 0)
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		s, err := t.Client.Cluster().Standby(ctx)
		if err != nil {
			return err
		}
		if t.JSON {
			err = t.PrintJSON(s)
		} else {
			err = printStandby(t, &s)
		}
		if err != nil {
			return err
		}
		switch {
		case s.Mode == client.StandbyNone:
			return fmt.Errorf("this cluster is not a standby")
		case s.Mode == client.StandbyFollowing && s.Problem != "":
			return fmt.Errorf("it does not follow: %s", s.Problem)
		}
		return nil
	})
}

func printStandby(t *cli.Terminal, s *client.Standby) error {
	if s.Mode == client.StandbyNone {
		return nil
	}
	lines := []string{
		fmt.Sprintf("mode:      %s", s.Mode),
		fmt.Sprintf("primary:   cluster %s", s.Primary),
		fmt.Sprintf("position:  entry %d of its log", s.Index),
	}
	if s.Mode == client.StandbyFollowing {
		from := "not connected"
		if s.Connected {
			from = "connected to " + s.Source
		}
		contact := "never"
		if s.LastContactAt != nil {
			contact = s.LastContactAt.Format(time.RFC3339)
		}
		lines = append(lines,
			fmt.Sprintf("contact:   %s; last heard at %s, when it was at entry %d", from, contact, s.PrimaryIndex),
			"lost if the primary is lost now: "+lossOf(s))
	} else {
		at := "?"
		if s.PromotedAt != nil {
			at = s.PromotedAt.Format(time.RFC3339)
		}
		lines = append(lines, fmt.Sprintf("promoted:  %s; what was missing then: %s", at, lossOf(s)))
	}
	for _, line := range lines {
		if err := t.Out.Line("%s", line); err != nil {
			return err
		}
	}
	return nil
}

// lossOf says what is not here.
func lossOf(s *client.Standby) string {
	known := fmt.Sprintf("%d entries that are known", s.LagEntries)
	if s.LagEntries == 1 {
		known = "1 entry that is known"
	}
	if s.LagSeconds == nil {
		return known + ", and all since the last contact"
	}
	return fmt.Sprintf("%s, and what was acknowledged in the last %.1f s", known, *s.LagSeconds)
}

const promoteText = `Ends the mode of the standby at --addr, for good: it takes operations of clients, and its jobs
become due. It never follows the old primary again. Stop all nodes of the primary first, or both
clusters run the same jobs; while the primary still sends its log the command is refused unless
--force is given. It asks before, and prints what may be lost.`

func promoteCommand() *cobra.Command {
	c := cli.NewCommand("promote", "make a standby take over, for good", "", promoteText, "tarry standby promote --addr s1:7300", 0, 0)
	force := c.Flags.Bool("force", false, "promote it although the primary still sends its log")
	c.Asks(func(ctx context.Context, t *cli.Terminal, _ []string) (string, error) {
		s, err := t.Client.Cluster().Standby(ctx)
		switch {
		case err != nil:
			return "", err
		case s.Mode != client.StandbyFollowing:
			return "", &client.Error{Code: client.CodeConflict, Message: "this cluster is not a standby, or was promoted already"}
		}
		alive := ""
		if s.Connected {
			alive = fmt.Sprintf(" The primary still sends its log, from %s: stop it first.", s.Source)
		}
		return fmt.Sprintf("Promote the standby of cluster %s, which is at entry %d of its log, for good?%s Lost: %s.", s.Primary, s.Index, alive, lossOf(&s)), nil
	})
	return c.Does(func(ctx context.Context, t *cli.Terminal, args []string) error {
		if *c.Dry {
			return t.PrintQuestion(ctx, c.Question, args)
		}
		if err := t.Confirm(ctx, *c.Sure, c.Question, args); err != nil {
			return err
		}
		s, err := t.Client.Cluster().PromoteStandby(ctx, *force)
		if err != nil {
			return err
		}
		if t.JSON {
			return t.PrintJSON(s)
		}
		return t.Out.Line("promoted: it had entry %d of cluster %s; lost: %s", s.Index, s.Primary, lossOf(&s))
	})
}
