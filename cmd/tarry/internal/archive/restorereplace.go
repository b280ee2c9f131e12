package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"tarry/client"
	"tarry/cluster/backup"
	"tarry/cmd/tarry/internal/cli"
)

// replaceBy replaces the state of a running cluster by a backup.
func replaceBy(ctx context.Context, c *cli.LocalCommand, from backup.State, f *restoreFlags, name string) error {
	f.calls.JSON = c.JSON
	t, err := f.calls.Terminal()
	if err != nil {
		return err
	}
	defer t.Client.Close()
	o := client.RestoreOptions{FromNow: f.target.FromNow, ResetAuth: f.target.ResetAuth, DryRun: f.dry, Cluster: f.cluster}
	if f.dry {
		done, err := sendBackup(ctx, c, t, from, o)
		if err != nil {
			return cli.Interrupted(ctx, err, "nothing was done")
		}
		return printReplaced(c, &done, name, "nothing was done: this would replace the state of the cluster")
	}
	ask := func(ctx context.Context, t *cli.Terminal, _ []string) (string, error) {
		now, err := t.Client.Topics().Stats(ctx)
		return fmt.Sprintf("Replace %s in the cluster at %s by the %s of the backup of cluster %s, made at %s?",
			cli.JobsOf(int(now.Delayed+now.Ready+now.Reserved+now.Dead), ""), strings.Join(t.Nodes, ","), cli.JobsOf(int(from.Counts.Jobs()), ""), from.ClusterID, cli.Timestamp(from.Taken())), err
	}
	if err := t.Confirm(ctx, *f.sure, ask, nil); err != nil {
		return err
	}
	if !f.noSafety {
		if err := safetyBackup(ctx, c, t, f); err != nil {
			return err
		}
	}
	done, err := sendBackup(ctx, c, t, from, o)
	if err != nil {
		return cli.Interrupted(ctx, sayHowToSee(err), "the backup was not sent whole, so nothing was replaced")
	}
	return printReplaced(c, &done, name, fmt.Sprintf("all nodes have or get the state of the backup, from entry %d of the log on", done.Index))
}

// sayHowToSee adds to the error of a lost reply how to see whether the state was replaced. A node says
// so itself.
func sayHowToSee(err error) error {
	var lost *client.Error
	if !errors.As(err, &lost) || !lost.Unknown || lost.Status != 0 {
		return err
	}
	said := *lost
	said.Message += `; the whole cluster has either the state of the backup or its state before: "tarry cluster events" and the counts show which, and only then repeat the command`
	return &said
}

// checkSums reads a backup, and those that it needs, to their ends, so that a damaged one is
// found before the cluster has any work with it. Standard input can only be read once: the
// leader finds what is wrong with that.
func checkSums(ctx context.Context, c *cli.LocalCommand, path string) error {
	if path == "-" {
		return nil
	}
	from, end, err := openState(ctx, c, path)
	if err != nil {
		return err
	}
	defer end()
	m := cli.NewByteMeter(c.Notes, "check", from.StateBytes)
	defer m.End()
	read := int64(0)
	_, err = io.Copy(writerFunc(func(p []byte) (int, error) {
		read += int64(len(p))
		m.Show(read)
		return len(p), ctx.Err()
	}), from.From)
	if err != nil {
		return cli.Interrupted(ctx, fmt.Errorf("%s: %w; nothing was done", path, err), "nothing was done")
	}
	return nil
}

// safetyBackup backs up the state that is to be replaced.
func safetyBackup(ctx context.Context, c *cli.LocalCommand, t *cli.Terminal, f *restoreFlags) error {
	if f.safety == "" {
		f.safety = "before-restore-" + time.Now().UTC().Format("20060102T150405Z") + ".backup"
	}
	var wrong error // the cluster, which is known before the backup costs anything
	right := func(h *backup.Header) error {
		if f.cluster != "" && h.ClusterID != f.cluster {
			wrong = &client.Error{Code: client.CodeConflict, Message: fmt.Sprintf("--cluster is %q, and the id of the cluster at %s is %q; nothing was done", f.cluster, strings.Join(t.Nodes, ","), h.ClusterID)}
		}
		return wrong
	}
	err := CreateWhole(f.safety, func(to io.Writer) error {
		_, _, err := copyBackup(ctx, t, client.BackupOptions{}, to, right)
		return err
	})
	switch {
	case wrong != nil:
		return wrong
	case ctx.Err() != nil:
		return cli.Interrupted(ctx, err, "nothing was replaced")
	case err != nil:
		return fmt.Errorf("the state was not replaced, because the present one could not be backed up (--no-safety-backup leaves that out): %w", err)
	}
	c.Notes.Line("the state before is in %s", f.safety)
	return nil
}

// sendBackup sends a backup, whole, and shows how far it is.
func sendBackup(ctx context.Context, c *cli.LocalCommand, t *cli.Terminal, from backup.State, o client.RestoreOptions) (client.Restored, error) {
	m := cli.NewByteMeter(c.Notes, "send", from.StateBytes)
	defer m.End()
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := recode(write, from, m.Show)
		_ = write.CloseWithError(err)
		ended <- err
	}()
	done, err := t.Client.Backups().Restore(ctx, read, o)
	_ = read.CloseWithError(errors.New("the node did not read the rest"))
	// What is wrong with the file says more than that its sender failed.
	if bad := <-ended; err != nil && errors.Is(bad, backup.ErrDamaged) {
		return done, bad
	}
	return done, err
}

// recode writes a state as a whole backup, which any leader can read.
func recode(to io.Writer, from backup.State, show func(done int64)) error {
	w, err := backup.NewWriter(to, from.Header)
	if err != nil {
		return err
	}
	sent := int64(0)
	_, err = io.Copy(writerFunc(func(p []byte) (int, error) {
		n, err := w.Write(p)
		sent += int64(n)
		show(sent)
		return n, err
	}), from.From)
	if err != nil {
		return err
	}
	return w.Close()
}

func printReplaced(c *cli.LocalCommand, d *client.Restored, name, what string) error {
	if c.JSON {
		return c.PrintJSON(d)
	}
	lines := []error{
		c.Out.Line("%s: of cluster %s, entry %d, at %s", name, d.BackupCluster, d.BackupIndex, cli.Timestamp(d.BackupAt)),
		printRestoredCounts(c, "before", &d.Before), printRestoredCounts(c, "after", &d.After),
	}
	if d.Shift.Duration > 0 {
		lines = append(lines, c.Out.Line("delays:      longer by %s", d.Shift))
	}
	return errors.Join(append(lines, c.Out.Line("tokens:      %d", d.Tokens), c.Out.Line("%s", what))...)
}

func printRestoredCounts(c *cli.LocalCommand, when string, n *client.RestoredCounts) error {
	return c.Out.Line("%-12s %d jobs in %d topics: %d delayed, %d ready, %d reserved, %d dead; %d more are retained",
		when+":", n.Delayed+n.Ready+n.Reserved+n.Dead, n.Topics, n.Delayed, n.Ready, n.Reserved, n.Dead, n.Retained)
}
