package ops

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

func clockCommand() *cobra.Command {
	c := cli.NewCommand("clock", "compare the clocks of all nodes; exit code 1 if one is off", "", "Shows how far each node's clock is ahead of (+) or behind (-) the majority's. Exit code 1 if\none is off by more than --max-clock-offset, if no majority agrees, or if the clock of\nthe queue has run away. With reset, sets that one back (tarry cluster clock reset --help).",
		"tarry cluster clock", 0, 0)
	cmd := c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		v, err := t.Client.Cluster().Clocks(ctx)
		if err != nil {
			return err
		}
		if t.JSON {
			err = t.PrintJSON(v)
		} else {
			err = printClocks(t, v)
		}
		if err != nil {
			return err
		}
		return clockTrouble(v)
	})
	cmd.AddCommand(clockResetCommand())
	return cmd
}

func clockResetCommand() *cobra.Command {
	c := cli.NewCommand("reset", "set the queue's clock back to the nodes'", "", "Sets the clock of the queue back to that of the majority of the nodes, after clocks that\nwere far ahead have taken it along and are right again. Refused unless it is ahead by\nmore than --max-clock-offset. docs/operations.md says what becomes of the jobs.",
		"tarry cluster clock reset", 0, 0)
	c.Plans(planClockReset)
	return cli.Operate(c, false, "the queue's clock is right again", func(ctx context.Context, cl *client.Client, _ []string) error {
		return cl.Cluster().ResetClock(ctx)
	})
}

func printClocks(t *cli.Terminal, v client.Clocks) error {
	var rows [][]string
	for _, n := range v.Clocks {
		offset, within := "-", "-"
		if n.Answered {
			offset, within = signedSeconds(n.Offset), fmt.Sprintf("±%.3f s", n.Within)
		}
		rows = append(rows, []string{n.ID, cli.Yes(n.Voter), offset, within, cli.Yes(!n.Off)})
	}
	if err := t.Table([]string{"ID", "VOTER", "OFFSET", "ACCURACY", "MAY LEAD"}, rows); err != nil {
		return err
	}
	if v.Majority == nil {
		return nil
	}
	return t.Out.Line("the queue's clock is %s the majority's", aheadOf(v.ClusterAhead))
}

// aheadOf writes a difference of two clocks, to the millisecond.
func aheadOf(seconds float64) string {
	switch ms := math.Round(seconds * 1000); {
	case ms > 0:
		return fmt.Sprintf("%.3f s ahead of", ms/1000)
	case ms < 0:
		return fmt.Sprintf("%.3f s behind", -ms/1000)
	}
	return "equal to"
}

// signedSeconds writes an offset to the millisecond; none has no sign.
func signedSeconds(seconds float64) string {
	ms := math.Round(seconds * 1000)
	if ms == 0 {
		return "0.000 s"
	}
	return fmt.Sprintf("%+.3f s", ms/1000)
}

// clockTrouble returns an error when the operator must act.
func clockTrouble(v client.Clocks) error {
	var off []string
	for _, n := range v.Clocks {
		if n.Off {
			off = append(off, n.ID)
		}
	}
	switch {
	case v.Majority == nil:
		return errors.New("no majority of the voters has told the time")
	case !v.Agreed:
		return fmt.Errorf("no majority of the voters' clocks agrees within %g s", v.MaxOffset)
	case len(off) > 0:
		return fmt.Errorf("off by more than %g s: %s", v.MaxOffset, strings.Join(off, ", "))
	case v.ClusterAhead > v.MaxOffset:
		return fmt.Errorf("the clock of the queue is %.3f s ahead of the nodes': tarry cluster clock reset sets it back", v.ClusterAhead)
	}
	return nil
}

// planClockReset says what tarry cluster clock reset would do.
func planClockReset(ctx context.Context, t *cli.Terminal, _ []string) (string, error) {
	v, err := t.Client.Cluster().Clocks(ctx)
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
