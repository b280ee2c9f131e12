package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"

	"tarry/client"
	"tarry/cluster/backup"
	"tarry/cluster/recovery"
	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/server"
	"tarry/internal/durable"
	"tarry/internal/s3"
)

const backupText = `Writes a backup of the whole queue to a file: all jobs with their states and due times,
topics, settings and schedules, as they are at one entry of the log. The node that --addr
names first makes it from its own data while it serves, so name a follower to spare the leader.
The backup has everything that was acknowledged before the command began.

The file is complete when the command ends with exit code 0: all checksums were checked as
it arrived, and it was synced. An interrupted backup leaves no file of that name; only a kill
or a power loss leaves a temporary one beside it, NAME.*.partial. The file has all bodies and
the secrets of push targets, so only its owner can read it (mode 0600).`

func BackupCommand() *cobra.Command {
	c := cli.NewCommand("backup", "write a backup of all jobs to a file, while the cluster serves", "", backupText, "tarry backup --out tarry-monday.backup --addr n2:7300", 0, 0)
	var o client.BackupOptions
	var out string
	c.Flags.StringVarP(&out, "out", "o", "", "`file` to write, which must not exist; - is standard output")
	c.Flags.Int64Var(&o.Rate, "rate", 0, "at most this number of `bytes` of the file a second, 65536 or more; 0 is no limit")
	since := c.Flags.String("since", "", "an earlier backup, `file`: leave out what that has, if the same node makes both")
	c.Flags.BoolVar(&o.Stale, "stale", false, "take what the node has, even if it is behind or there is no leader")
	cmd := c.Does(func(ctx context.Context, t *cli.Terminal, _ []string) error {
		switch {
		case out == "":
			return cli.Usagef("needs --out, a file to write, or - for standard output")
		case o.Rate < 0:
			return cli.Usagef("--rate is %d; it takes a number of bytes a second", o.Rate)
		case out == "-" && cli.OnTerminal(c.Cmd.OutOrStdout()):
			return cli.Usagef("--out - writes a file to standard output, and that is a terminal: give a file")
		}
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		if *since != "" {
			base, err := readBase(*since)
			if err != nil {
				return fmt.Errorf("%s cannot be the base: %w", *since, err)
			}
			o.Base = base.Append(nil)
		}
		return cli.Interrupted(ctx, writeBackup(ctx, t, o, out), "there is no backup")
	})
	cmd.AddCommand(backupListCommand(), backupInspectCommand(), backupVerifyCommand())
	return cmd
}

func writeBackup(ctx context.Context, t *cli.Terminal, o client.BackupOptions, out string) error {
	note := func(h *backup.Header) {
		if o.Base != nil && h.BaseID == "" {
			t.Notes.Line("the backup is whole: node %s made it, and the base is of another node, or of a state that the node had before. --addr names the node that makes a backup", h.NodeID)
		}
	}
	if out == "-" {
		h, _, err := copyBackup(ctx, t, o, cli.RawWriter{Out: t.Out}, nil)
		if err == nil {
			note(&h)
		}
		return err
	}
	var h backup.Header
	var size int64
	err := CreateWhole(out, func(to io.Writer) (err error) {
		h, size, err = copyBackup(ctx, t, o, to, nil)
		return err
	})
	if err != nil {
		return err
	}
	note(&h)
	if t.JSON {
		return t.PrintJSON(struct {
			File        string        `json:"file"`
			Bytes       int64         `json:"bytes"`
			Incremental bool          `json:"incremental"`
			Head        backup.Header `json:"header"`
		}{out, size, h.BaseID != "", h})
	}
	return t.Out.Line("%s: %s in %s, of node %s at index %d", out, cli.JobsOf(int(h.Counts.Jobs()), ""), cli.ByteSize(size), h.NodeID, h.Index)
}

// copyBackup copies a backup and checks it meanwhile. An error of accept, which may be nil, ends it
// at its header.
func copyBackup(ctx context.Context, t *cli.Terminal, o client.BackupOptions, to io.Writer, accept func(*backup.Header) error) (h backup.Header, size int64, err error) {
	body, err := t.Client.Backups().Open(ctx, o)
	if err != nil {
		return h, 0, err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	count := &countingWriter{to: to}
	r, err := backup.NewReader(io.TeeReader(body, count))
	if err != nil {
		return h, 0, err
	}
	defer r.Close()
	if accept != nil {
		if err := accept(&r.Header); err != nil {
			return h, 0, err
		}
	}
	m := cli.NewByteMeter(t.Notes, "backup", r.Header.StateBytes)
	defer m.End()
	done := int64(0)
	_, err = io.Copy(writerFunc(func(p []byte) (int, error) {
		done += int64(len(p))
		m.Show(done)
		return len(p), nil
	}), r)
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return r.Header, count.n, err
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

type countingWriter struct {
	to io.Writer
	n  int64
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.n += int64(n)
	return n, err
}

// CreateWhole makes a file that write fills. It gets its name when it is complete and
// durable, unless another file has that name by then; until then it is beside it, under a
// name that nobody can foresee, with .partial at its end.
func CreateWhole(path string, write func(io.Writer) error) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s exists; give another --out, or remove it", path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.partial") // mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeIfThere(f.Name())) }()
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := giveName(f.Name(), path, os.Link); err != nil {
		return fmt.Errorf("give the complete file its name: %w", err)
	}
	if err := durable.SyncDir(vfs.Default, filepath.Dir(path)); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// giveName gives a file the name path, which no file may have. Unlike a rename, a link replaces
// nothing. File systems that have no links, such as FAT, get an empty file first: only one
// process can make that.
func giveName(partial, path string, link func(from, to string) error) error {
	err := link(partial, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	f, failed := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if failed != nil {
		return errors.Join(err, failed)
	}
	if err := errors.Join(f.Close(), os.Rename(partial, path)); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// fromBackup lets the command take the flags for backups in object stores, and for the bases of
// incremental ones.
func fromBackup(c *cli.LocalCommand) {
	server.S3Flags(c.Flags, &c.Store)
	c.Flags.StringArrayVar(&c.Bases, "base", nil, "`file` of a backup that an incremental one needs; may be repeated; default: found beside it")
}

// openBackup opens a backup and reads its header; - is standard input, and s3://BUCKET/NAME an
// object. It may be read until ctx ends.
func openBackup(ctx context.Context, c *cli.LocalCommand, path string) (r *backup.Reader, close func(), err error) {
	from, end := c.In, func() error { return nil }
	switch {
	case s3.Is(path):
		if from, end, err = openObject(ctx, &c.Store, path); err != nil {
			return nil, nil, err
		}
	case path != "-":
		f, err := os.Open(path)
		if err != nil {
			return nil, nil, err
		}
		from, end = f, f.Close
	}
	if r, err = backup.NewReader(from); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), end())
	}
	return r, func() { r.Close(); _ = end() }, nil
}

// openObject opens s3://BUCKET/NAME.
func openObject(ctx context.Context, store *s3.Access, place string) (from io.Reader, end func() error, err error) {
	if _, rest, err := s3.Split(place); err != nil {
		return nil, nil, cli.Usagef("%w", err)
	} else if rest == "" {
		return nil, nil, cli.Usagef("%s names a bucket, and no backup in it", place)
	}
	at := strings.LastIndexByte(place, '/')
	bucket, err := store.Open(place[:at])
	if err != nil {
		return nil, nil, err
	}
	body, err := bucket.Get(ctx, place[at+1:])
	if err != nil {
		return nil, nil, err
	}
	return body, func() error {
		err := body.Close()
		bucket.Close()
		return err
	}, nil
}

func backupInspectCommand() *cobra.Command {
	c := cli.NewLocal("inspect", "print what a backup holds", "FILE", "Prints the header of a backup: of which cluster, entry and time it is, and how many jobs it\nholds. It reads only the beginning; tarry backup verify reads all of it. FILE may also be -,\nstandard input, or s3://BUCKET/NAME, an object in a store.", "tarry backup inspect tarry-monday.backup")
	fromBackup(c)
	return c.Does(func(ctx context.Context, args []string) error {
		r, end, err := openBackup(ctx, c, args[0])
		if err != nil {
			return err
		}
		defer end()
		if c.JSON {
			return c.PrintJSON(r.Header)
		}
		return errors.Join(printHeader(c, &r.Header), printChain(ctx, c, args[0], r.Header))
	})
}

func printHeader(c *cli.LocalCommand, h *backup.Header) error {
	n := &h.Counts
	return errors.Join(
		c.Out.Line("cluster:     %s (node %s, release %s)", h.ClusterID, h.NodeID, h.Release),
		c.Out.Line("made at:     %s by that node's clock", cli.Timestamp(h.Taken())),
		c.Out.Line("queue time:  %s", cli.Timestamp(h.QueueTime())),
		c.Out.Line("index:       %d of term %d", h.Index, h.Term),
		c.Out.Line("versions:    cluster version %d, state format %d, backup format %d", h.ClusterVersion, h.StateFormat, h.Format()),
		c.Out.Line("size:        %s before compression", cli.ByteSize(h.StateBytes)),
		printCounts(c, n),
	)
}

func printCounts(c *cli.LocalCommand, n *backup.Counts) error {
	return c.Out.Line("jobs:        %d in %d topics: %d delayed, %d ready, %d reserved, %d dead; %d more are retained", n.Jobs(), n.Topics, n.Delayed, n.Ready, n.Reserved, n.Dead, n.Retained)
}

func backupVerifyCommand() *cobra.Command {
	c := cli.NewLocal("verify", "check that a backup can be restored", "FILE", "Reads a whole backup: every checksum, then every record, and checks that the records agree.\nExit code 1 if not. It unpacks the backup into a temporary directory, which needs the space\nof the state, and removes it. FILE may also be -, standard input, or s3://BUCKET/NAME, an\nobject in a store.", "tarry backup verify tarry-monday.backup")
	temp := c.Flags.String("temp-dir", "", "`directory` to unpack below; default: the system's for temporary files")
	fromBackup(c)
	return c.Does(func(ctx context.Context, args []string) error {
		from, end, err := openState(ctx, c, args[0])
		if err != nil {
			return err
		}
		defer end()
		v, err := verifyBackup(ctx, c, from, *temp)
		if err != nil {
			return cli.Interrupted(ctx, fmt.Errorf("%s: %w", args[0], err), "nobody knows whether the backup is whole")
		}
		if c.JSON {
			return c.PrintJSON(struct {
				Valid  bool          `json:"valid"`
				Digest string        `json:"digest"`
				Header backup.Header `json:"header"`
			}{true, v.Digest, from.Header})
		}
		return errors.Join(printHeader(c, &from.Header), c.Out.Line("digest:      %s", v.Digest), c.Out.Line("every record was read; the backup is whole"))
	})
}

func verifyBackup(ctx context.Context, c *cli.LocalCommand, from backup.State, temp string) (recovery.Verified, error) {
	m := cli.NewByteMeter(c.Notes, "verify", from.StateBytes)
	defer m.End()
	return recovery.Verify(ctx, from, temp, m.Progress())
}
