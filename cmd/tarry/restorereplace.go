package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"tarry/client"
	"tarry/cluster/backup"
)

// replaceBy replaces the state of a running cluster by a backup.
func (c *localCommand) replaceBy(ctx context.Context, from backup.State, f *restoreFlags, name string) error {
	f.calls.json = c.json
	t, err := f.calls.terminal()
	if err != nil {
		return err
	}
	defer t.client.Close()
	o := client.RestoreOptions{FromNow: f.target.FromNow, ResetAuth: f.target.ResetAuth, DryRun: f.dry, Cluster: f.cluster}
	if f.dry {
		done, err := c.sendBackup(ctx, t, from, o)
		if err != nil {
			return interrupted(ctx, err, "nothing was done")
		}
		return c.printReplaced(&done, name, "nothing was done: this would replace the state of the cluster")
	}
	ask := func(ctx context.Context, t *terminal, _ []string) (string, error) {
		now, err := t.client.Topics().Stats(ctx)
		return fmt.Sprintf("Replace %s in the cluster at %s by the %s of the backup of cluster %s, made at %s?",
			jobsOf(int(now.Delayed+now.Ready+now.Reserved+now.Dead), ""), strings.Join(t.nodes, ","), jobsOf(int(from.Counts.Jobs()), ""), from.ClusterID, timestamp(from.Taken())), err
	}
	if err := t.confirm(ctx, *f.sure, ask, nil); err != nil {
		return err
	}
	if !f.noSafety {
		if err := c.safetyBackup(ctx, t, f); err != nil {
			return err
		}
	}
	done, err := c.sendBackup(ctx, t, from, o)
	if err != nil {
		return interrupted(ctx, err, "the backup was not sent whole, so nothing was replaced")
	}
	return c.printReplaced(&done, name, fmt.Sprintf("all nodes have or get the state of the backup, from entry %d of the log on", done.Index))
}

// checkSums reads a backup, and those that it needs, to their ends, so that a damaged one is
// found before the cluster has any work with it. Standard input can only be read once: the
// leader finds what is wrong with that.
func (c *localCommand) checkSums(ctx context.Context, path string) error {
	if path == "-" {
		return nil
	}
	from, end, err := c.openState(ctx, path)
	if err != nil {
		return err
	}
	defer end()
	m := newByteMeter(c.notes, "check", from.StateBytes)
	defer m.end()
	read := int64(0)
	_, err = io.Copy(writerFunc(func(p []byte) (int, error) {
		read += int64(len(p))
		m.show(read)
		return len(p), ctx.Err()
	}), from.From)
	if err != nil {
		return interrupted(ctx, fmt.Errorf("%s: %w; nothing was done", path, err), "nothing was done")
	}
	return nil
}

// safetyBackup backs up the state that is to be replaced.
func (c *localCommand) safetyBackup(ctx context.Context, t *terminal, f *restoreFlags) error {
	if f.safety == "" {
		f.safety = "before-restore-" + time.Now().UTC().Format("20060102T150405Z") + ".backup"
	}
	var wrong error // the cluster, which is known before the backup costs anything
	right := func(h *backup.Header) error {
		if f.cluster != "" && h.ClusterID != f.cluster {
			wrong = &client.Error{Code: client.CodeConflict, Message: fmt.Sprintf("--cluster is %q, and the id of the cluster at %s is %q; nothing was done", f.cluster, strings.Join(t.nodes, ","), h.ClusterID)}
		}
		return wrong
	}
	err := createWhole(f.safety, func(to io.Writer) error {
		_, _, err := t.copyBackup(ctx, client.BackupOptions{}, to, right)
		return err
	})
	switch {
	case wrong != nil:
		return wrong
	case ctx.Err() != nil:
		return interrupted(ctx, err, "nothing was replaced")
	case err != nil:
		return fmt.Errorf("the state was not replaced, because the present one could not be backed up (--no-safety-backup leaves that out): %w", err)
	}
	c.notes.line("the state before is in %s", f.safety)
	return nil
}

// sendBackup sends a backup, whole, and shows how far it is.
func (c *localCommand) sendBackup(ctx context.Context, t *terminal, from backup.State, o client.RestoreOptions) (client.Restored, error) {
	m := newByteMeter(c.notes, "send", from.StateBytes)
	defer m.end()
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := recode(write, from, m.show)
		_ = write.CloseWithError(err)
		ended <- err
	}()
	done, err := t.client.Backups().Restore(ctx, read, o)
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

func (c *localCommand) printReplaced(d *client.Restored, name, what string) error {
	if c.json {
		return c.printJSON(d)
	}
	lines := []error{
		c.out.line("%s: of cluster %s, entry %d, at %s", name, d.BackupCluster, d.BackupIndex, timestamp(d.BackupAt)),
		c.printRestoredCounts("before", &d.Before), c.printRestoredCounts("after", &d.After),
	}
	if d.Shift.Duration > 0 {
		lines = append(lines, c.out.line("delays:      longer by %s", d.Shift))
	}
	return errors.Join(append(lines, c.out.line("tokens:      %d", d.Tokens), c.out.line("%s", what))...)
}

func (c *localCommand) printRestoredCounts(when string, n *client.RestoredCounts) error {
	return c.out.line("%-12s %d jobs in %d topics: %d delayed, %d ready, %d reserved, %d dead; %d more are retained",
		when+":", n.Delayed+n.Ready+n.Reserved+n.Dead, n.Topics, n.Delayed, n.Ready, n.Reserved, n.Dead, n.Retained)
}
