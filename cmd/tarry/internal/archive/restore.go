package archive

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"tarry/cluster/backup"
	"tarry/cluster/recovery"
	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/server"
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
	calls    *cli.Command
	sure     *bool
}

// check returns an error unless the flags go together.
func (f *restoreFlags) check() error {
	c, t := f.calls, &f.target
	switch {
	case f.auth != "keep" && f.auth != "reset":
		return cli.Usagef("--auth is %q; it takes keep or reset", f.auth)
	case f.replace && c.Given("data-dir", "node-id", "log-store", "cluster-addr", "temp-dir") != "":
		return cli.Usagef("--%s is for the first node of a new cluster, and --replace replaces the state of a running one", c.Given("data-dir", "node-id", "log-store", "cluster-addr", "temp-dir"))
	case f.noSafety && f.safety != "":
		return cli.Usagef("--safety-backup and --no-safety-backup are both given; give one")
	case f.replace:
		return nil
	case c.Given("no-safety-backup", "safety-backup", "cluster", "yes", "addr") != "":
		return cli.Usagef("--%s needs --replace", c.Given("no-safety-backup", "safety-backup", "cluster", "yes", "addr"))
	case t.DataDir == "":
		return cli.Usagef("needs --data-dir, the directory to make, or --replace, for a running cluster")
	case t.NodeID == "":
		return cli.Usagef("needs --node-id, the id of the node that will start in it")
	}
	if err := server.CheckNodeID("--node-id", t.NodeID); err != nil {
		return cli.Usagef("%w", err)
	}
	return nil
}

// replaceFlags adds the flags of --replace.
func (f *restoreFlags) replaceFlags(c *cli.LocalCommand) {
	c.Flags.BoolVar(&f.replace, "replace", false, "replace the state of the running cluster at --addr")
	c.Flags.StringVar(&f.safety, "safety-backup", "", "with --replace, `file` for a backup of the state before; default: a name with the present time, in this directory")
	c.Flags.BoolVar(&f.noSafety, "no-safety-backup", false, "with --replace, make no backup of the state before")
	c.Flags.StringVar(&f.cluster, "cluster", "", "with --replace, the `id` that the cluster must have")
	f.calls = &cli.Command{Cmd: c.Cmd, Flags: c.Flags}
	f.calls.AddCallFlags()
	f.sure = f.calls.YesFlag()
}

func RestoreCommand() *cobra.Command {
	c := cli.NewLocal("restore", "make the first node of a new cluster from a backup", "FILE", restoreText, "tarry restore tarry-monday.backup --data-dir /var/lib/tarry --node-id n1")
	f := &restoreFlags{}
	t := &f.target
	c.Flags.StringVar(&t.DataDir, "data-dir", "", "`directory` to make: empty, or not there")
	c.Flags.StringVar(&t.NodeID, "node-id", "", "`id` of the node that will start in it")
	c.Flags.StringVar(&t.LogStore, "log-store", "", "`raft-wal` or raft-boltdb")
	c.Flags.StringVar(&t.Address, "cluster-addr", "127.0.0.1:7301", "`host:port` at which other nodes will reach the node; corrected when it starts")
	c.Flags.BoolVar(&t.FromNow, "from-now", false, "continue as if no time had passed since the backup")
	c.Flags.BoolVar(&t.Standby, "standby", false, "make the first node of a standby, which follows the cluster of the backup (docs/standby.md)")
	c.Flags.StringVar(&f.auth, "auth", "keep", "what becomes of the tokens of clients and their settings: `keep`, as in the backup, or reset, which removes them")
	c.Flags.BoolVar(&f.dry, "dry-run", false, "only check the backup, as tarry backup verify does, and print what would be restored")
	c.Flags.StringVar(&f.temp, "temp-dir", "", "`directory` for --dry-run to unpack below")
	fromBackup(c)
	f.replaceFlags(c)
	return c.Does(func(ctx context.Context, args []string) error {
		if err := f.check(); err != nil {
			return err
		}
		t.ResetAuth = f.auth == "reset"
		if t.Standby && (t.ResetAuth || t.FromNow) {
			return cli.Usagef("--standby keeps the state as it is: leave out --from-now and --auth")
		}
		if f.replace {
			if err := checkSums(ctx, c, args[0]); err != nil {
				return err
			}
		}
		from, end, err := openState(ctx, c, args[0])
		if err != nil {
			return err
		}
		defer end()
		if f.replace {
			return replaceBy(ctx, c, from, f, args[0])
		}
		if f.dry {
			return dryRestore(ctx, c, from, f)
		}
		return restoreInto(ctx, c, from, t)
	})
}

func dryRestore(ctx context.Context, c *cli.LocalCommand, from backup.State, f *restoreFlags) error {
	if _, err := verifyBackup(ctx, c, from, f.temp); err != nil {
		return cli.Interrupted(ctx, err, "nothing was done")
	}
	if c.JSON {
		return c.PrintJSON(struct {
			Would backup.Header `json:"would_restore"`
		}{from.Header})
	}
	return errors.Join(printHeader(c, &from.Header), c.Out.Line("nothing was done: this would be restored to %s", f.target.DataDir))
}

func restoreInto(ctx context.Context, c *cli.LocalCommand, from backup.State, t *recovery.Target) error {
	m := cli.NewByteMeter(c.Notes, "restore", from.StateBytes)
	t.Now, t.Progress = time.Now(), m.Progress()
	done, err := recovery.Restore(ctx, from, *t)
	m.End()
	if err != nil {
		return cli.Interrupted(ctx, err, "no node starts in "+t.DataDir+" now: run the command again, or remove the directory")
	}
	if c.JSON {
		return c.PrintJSON(struct {
			DataDir   string        `json:"data_dir"`
			ClusterID string        `json:"cluster_id"`
			Index     uint64        `json:"index"`
			Shift     float64       `json:"shift"` // seconds
			Counts    backup.Counts `json:"counts"`
			Tokens    int           `json:"tokens"`
			AuthMode  string        `json:"auth_mode"`
		}{t.DataDir, done.ClusterID, done.Index, done.Shift.Seconds(), done.Counts, done.Tokens, cli.AuthModes[done.Mode]})
	}
	invited := ""
	if done.Invited {
		invited = ", each with an invitation (tarry cluster invite) unless --cluster-tls-mode is require"
	}
	if t.Standby {
		return errors.Join(
			c.Out.Line("restored to %s: the first node, %s, of the standby %s, which follows cluster %s", t.DataDir, t.NodeID, done.ClusterID, from.Header.ClusterID),
			printCounts(c, &done.Counts),
			c.Out.Line("start it: tarry server --data-dir %s --node-id %s --follow with the HTTP addresses of the primary's nodes; then the other nodes with --follow, empty directories and --join%s", t.DataDir, t.NodeID, invited),
		)
	}
	return errors.Join(
		c.Out.Line("restored to %s: the first node, %s, of the new cluster %s", t.DataDir, t.NodeID, done.ClusterID),
		printCounts(c, &done.Counts),
		printRestoredAuth(c, t, &done),
		c.Out.Line("start it: tarry server --data-dir %s --node-id %s, with its addresses as before; then the other nodes with empty directories and --join%s", t.DataDir, t.NodeID, invited),
	)
}

// printRestoredAuth says what became of the tokens of the backup.
func printRestoredAuth(c *cli.LocalCommand, t *recovery.Target, done *recovery.Restored) error {
	switch {
	case t.ResetAuth:
		return c.Out.Line("tokens:      none, mode off: whoever reaches the node may do everything; tarry auth bootstrap makes the first one")
	case done.Tokens > 0:
		return c.Out.Line("tokens:      %d as in the backup, mode %s; revoke again what was revoked since", done.Tokens, cli.AuthModes[done.Mode])
	}
	return nil
}
