package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
)

const backupListText = `Lists the backups that the cluster has made by itself (--backup-schedule), the newest first:
with the last entry of the log that each has, its size, and the nodes in whose --backup-dir
it is. KIND is whole, or incremental: then --json has the file that it builds on. VERIFIED is
yes if the file was read back when it was made and still has its beginning and its end, and
so have those that it builds on; tarry backup verify reads all of it. A node looks at its directory each minute.

Exit code 1 if a node does not reply or cannot use its directory, or a file is not verified.`

func backupListCommand() *cobra.Command {
	c := cli.NewCommand("list", "list the scheduled backups of all nodes", "", backupListText, "tarry backup list", 0, 0)
	return c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		list, err := t.Client.Backups().Scheduled(ctx)
		if err != nil {
			return err
		}
		return printBackups(t, &list)
	})
}

func printBackups(t *cli.Terminal, list *client.ScheduledBackups) error {
	if t.JSON {
		return errors.Join(t.PrintJSON(list), backupProblems(list))
	}
	if !slices.ContainsFunc(list.Nodes, func(n client.NodeBackups) bool { return n.Scheduled }) && backupProblems(list) == nil {
		return t.Out.Line("no node has a --backup-schedule")
	}
	var rows [][]string
	for _, b := range list.Backups {
		taken, verified := "-", "yes"
		if !b.TakenAt.IsZero() {
			taken = cli.Timestamp(b.TakenAt)
		}
		if !b.Verified {
			verified = "no: " + b.Problem
		}
		rows = append(rows, []string{b.Name, taken, cli.Count(b.Index), cli.ByteSize(b.Bytes), kindOf(&b), strings.Join(b.Nodes, ","), verified})
	}
	err := t.Table([]string{"NAME", "MADE AT", "INDEX", "SIZE", "KIND", "NODES", "VERIFIED"}, rows)
	for _, n := range list.Nodes {
		if n.More > 0 {
			t.Notes.Line("%s has %d older backups, which are not listed", n.ID, n.More)
		}
	}
	return errors.Join(err, backupProblems(list))
}

// kindOf is what a backup is made of.
func kindOf(b *client.ScheduledBackup) string {
	switch {
	case b.Base != "":
		return "incremental"
	case b.TakenAt.IsZero():
		return "-"
	default:
		return "whole"
	}
}

// backupProblems returns an error if a node or a file has a problem.
func backupProblems(list *client.ScheduledBackups) error {
	var errs []error
	for _, n := range list.Nodes {
		if n.Error != "" {
			errs = append(errs, fmt.Errorf("%s: %s", n.ID, n.Error))
		}
	}
	bad := 0
	for _, b := range list.Backups {
		if !b.Verified {
			bad++
		}
	}
	if bad > 0 {
		errs = append(errs, fmt.Errorf("%d of %d backups cannot be restored", bad, len(list.Backups)))
	}
	return errors.Join(errs...)
}
