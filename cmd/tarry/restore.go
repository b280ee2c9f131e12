package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"tarry/cluster/backup"
	"tarry/cluster/recovery"
)

const restoreText = `Makes the data directory of the first node of a new cluster from a backup, or, with --replace,
replaces the state of a running cluster by it.

Without --replace: start the node that it makes with the same --node-id, then other nodes with
empty directories, --join and without --bootstrap-expect: they get everything from it.

All jobs of the backup are there, with their due times: those that are overdue become due as
soon as the node leads. Reservations have ended, as if they had expired when the backup was
made. Tokens of clients are those of the backup, also those that were revoked since: revoke
them again, or use --auth=reset, after which nobody needs a token. With --from-now every delay,
pause and retention is longer by the time that has passed since then; jobs that were added with a
due time of their own keep it.

The new cluster has an id of its own: nodes of the old one cannot join it. Stop the old one
and its consumers first, or jobs run twice. If the command is interrupted, run it again. Run it
as the user of the node, which must be able to read the files. FILE may also be -, standard
input, or s3://BUCKET/NAME, an object in a store.

With --replace the command first reads the file and checks every checksum, unless it is standard
input. Then it sends the file to the leader of the cluster at --addr, which reads every record
of it before anything changes. Then all nodes have the jobs, topics, settings, schedules and
namespaces of the backup, and none of the present ones. The members, the tokens and the
cluster's id stay; --auth=reset removes the tokens. All reservations end, and tokens of
reservations from before do nothing. While the nodes switch to it, the queue does not serve. Before
it sends the file, the command backs up the present state to --safety-backup.

With --standby the state stays as it is, reservations included, and the new cluster follows the
one of the backup, which goes on (docs/standby.md).`

// restoreFlags is the command line of tarry restore.
type restoreFlags struct {
	target recovery.Target
	dry    bool
	temp   string
	auth   string

	replace  bool
	noSafety bool
	safety   string
	cluster  string
	calls    *clientCommand
	sure     *bool
}

// check returns an error unless the flags go together.
func (f *restoreFlags) check() error {
	c, t := f.calls, &f.target
	switch {
	case f.auth != "keep" && f.auth != "reset":
		return usagef("--auth is %q; it takes keep or reset", f.auth)
	case f.replace && c.given("data-dir", "node-id", "log-store", "cluster-addr", "temp-dir") != "":
		return usagef("--%s is for the first node of a new cluster, and --replace replaces the state of a running one", c.given("data-dir", "node-id", "log-store", "cluster-addr", "temp-dir"))
	case f.noSafety && f.safety != "":
		return usagef("--safety-backup and --no-safety-backup are both given; give one")
	case f.replace:
		return nil
	case c.given("no-safety-backup", "safety-backup", "cluster", "yes", "addr") != "":
		return usagef("--%s needs --replace", c.given("no-safety-backup", "safety-backup", "cluster", "yes", "addr"))
	case t.DataDir == "":
		return usagef("needs --data-dir, the directory to make, or --replace, for a running cluster")
	case t.NodeID == "":
		return usagef("needs --node-id, the id of the node that will start in it")
	}
	if err := checkNodeID("--node-id", t.NodeID); err != nil {
		return usagef("%w", err)
	}
	return nil
}

// replaceFlags adds the flags of --replace.
func (f *restoreFlags) replaceFlags(c *localCommand) {
	c.flags.BoolVar(&f.replace, "replace", false, "replace the state of the running cluster at --addr")
	c.flags.StringVar(&f.safety, "safety-backup", "", "with --replace, `file` for a backup of the state before; default: a name with the present time, in this directory")
	c.flags.BoolVar(&f.noSafety, "no-safety-backup", false, "with --replace, make no backup of the state before")
	c.flags.StringVar(&f.cluster, "cluster", "", "with --replace, the `id` that the cluster must have")
	f.calls = &clientCommand{cmd: c.cmd, flags: c.flags}
	f.calls.addCallFlags()
	f.sure = f.calls.yesFlag()
}

func restoreCommand() *cobra.Command {
	c := newLocal("restore", "make the first node of a new cluster from a backup", "FILE", restoreText, "tarry restore tarry-monday.backup --data-dir /var/lib/tarry --node-id n1")
	f := &restoreFlags{}
	t := &f.target
	c.flags.StringVar(&t.DataDir, "data-dir", "", "`directory` to make: empty, or not there")
	c.flags.StringVar(&t.NodeID, "node-id", "", "`id` of the node that will start in it")
	c.flags.StringVar(&t.LogStore, "log-store", "", "`raft-wal` or raft-boltdb")
	c.flags.StringVar(&t.Address, "cluster-addr", "127.0.0.1:7301", "`host:port` at which other nodes will reach the node; corrected when it starts")
	c.flags.BoolVar(&t.FromNow, "from-now", false, "continue as if no time had passed since the backup")
	c.flags.BoolVar(&t.Standby, "standby", false, "make the first node of a standby, which follows the cluster of the backup (docs/standby.md)")
	c.flags.StringVar(&f.auth, "auth", "keep", "what becomes of the tokens of clients and their settings: `keep`, as in the backup, or reset, which removes them")
	c.flags.BoolVar(&f.dry, "dry-run", false, "only check the backup, as tarry backup verify does, and print what would be restored")
	c.flags.StringVar(&f.temp, "temp-dir", "", "`directory` for --dry-run to unpack below")
	c.fromBackup()
	f.replaceFlags(c)
	return c.does(func(ctx context.Context, args []string) error {
		if err := f.check(); err != nil {
			return err
		}
		t.ResetAuth = f.auth == "reset"
		if t.Standby && (t.ResetAuth || t.FromNow) {
			return usagef("--standby keeps the state as it is: leave out --from-now and --auth")
		}
		if f.replace {
			if err := c.checkSums(ctx, args[0]); err != nil {
				return err
			}
		}
		from, end, err := c.openState(ctx, args[0])
		if err != nil {
			return err
		}
		defer end()
		if f.replace {
			return c.replaceBy(ctx, from, f, args[0])
		}
		if f.dry {
			return c.dryRestore(ctx, from, f)
		}
		return c.restore(ctx, from, t)
	})
}

func (c *localCommand) dryRestore(ctx context.Context, from backup.State, f *restoreFlags) error {
	if _, err := c.verifyBackup(ctx, from, f.temp); err != nil {
		return interrupted(ctx, err, "nothing was done")
	}
	if c.json {
		return c.printJSON(struct {
			Would backup.Header `json:"would_restore"`
		}{from.Header})
	}
	return errors.Join(c.printHeader(&from.Header), c.out.line("nothing was done: this would be restored to %s", f.target.DataDir))
}

func (c *localCommand) restore(ctx context.Context, from backup.State, t *recovery.Target) error {
	m := newByteMeter(c.notes, "restore", from.StateBytes)
	t.Now, t.Progress = time.Now(), m.progress()
	done, err := recovery.Restore(ctx, from, *t)
	m.end()
	if err != nil {
		return interrupted(ctx, err, "no node starts in "+t.DataDir+" now: run the command again, or remove the directory")
	}
	if c.json {
		return c.printJSON(struct {
			DataDir   string        `json:"data_dir"`
			ClusterID string        `json:"cluster_id"`
			Index     uint64        `json:"index"`
			Shift     float64       `json:"shift"` // seconds
			Counts    backup.Counts `json:"counts"`
			Tokens    int           `json:"tokens"`
			AuthMode  string        `json:"auth_mode"`
		}{t.DataDir, done.ClusterID, done.Index, done.Shift.Seconds(), done.Counts, done.Tokens, authModes[done.Mode]})
	}
	invited := ""
	if done.Invited {
		invited = ", each with an invitation (tarry cluster invite) unless --cluster-tls-mode is require"
	}
	if t.Standby {
		return errors.Join(
			c.out.line("restored to %s: the first node, %s, of the standby %s, which follows cluster %s", t.DataDir, t.NodeID, done.ClusterID, from.Header.ClusterID),
			c.printCounts(&done.Counts),
			c.out.line("start it: tarry server --data-dir %s --node-id %s --follow with the HTTP addresses of the primary's nodes; then the other nodes with --follow, empty directories and --join%s", t.DataDir, t.NodeID, invited),
		)
	}
	return errors.Join(
		c.out.line("restored to %s: the first node, %s, of the new cluster %s", t.DataDir, t.NodeID, done.ClusterID),
		c.printCounts(&done.Counts),
		c.printRestoredAuth(t, &done),
		c.out.line("start it: tarry server --data-dir %s --node-id %s, with its addresses as before; then the other nodes with empty directories and --join%s", t.DataDir, t.NodeID, invited),
	)
}

// printRestoredAuth says what became of the tokens of the backup.
func (c *localCommand) printRestoredAuth(t *recovery.Target, done *recovery.Restored) error {
	switch {
	case t.ResetAuth:
		return c.out.line("tokens:      none, mode off: whoever reaches the node may do everything; tarry auth bootstrap makes the first one")
	case done.Tokens > 0:
		return c.out.line("tokens:      %d as in the backup, mode %s; revoke again what was revoked since", done.Tokens, authModes[done.Mode])
	}
	return nil
}
