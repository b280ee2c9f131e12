package main

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"tarry/cluster"
	"tarry/cluster/recovery"
	"tarry/internal/s3"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/schedule"
)

// maxBackupKeep bounds the files whose headers a node reads.
const maxBackupKeep = 10_000

// backupFlags are the settings of scheduled backups.
type backupFlags struct {
	Schedule, Zone, Dir string
	Keep, FullEvery     int
	Rate                int64
	S3                  s3.Access

	timetable *schedule.Timetable // nil without a schedule
	bucket    *s3.Bucket          // nil unless Dir names one
}

func (b *backupFlags) flags(fs *flag.FlagSet) {
	fs.StringVar(&b.Schedule, "backup-schedule", "", "`times` at which the leader writes a backup to --backup-dir, as for recurring jobs: a cron expression such as \"30 3 * * *\", @daily, or @every 6h; the same on all nodes; default: never (docs/backup.md)")
	fs.StringVar(&b.Zone, "backup-zone", "UTC", "time `zone` of --backup-schedule")
	fs.StringVar(&b.Dir, "backup-dir", "", "`directory` for scheduled backups, which is made unless its parent is missing: one that all nodes share, or one of each node; or s3://BUCKET/PREFIX, a place in an object store (docs/backup.md)")
	fs.IntVar(&b.Keep, "backup-keep", 7, "`number` of scheduled backups to keep in --backup-dir; older ones of this cluster are removed after the next one is complete, except those on which a kept one builds")
	fs.IntVar(&b.FullEvery, "backup-full-every", 1, "of this `number` of scheduled backups one is whole, and each other has what has changed since the one before; 1: all are whole (docs/backup.md)")
	fs.Int64Var(&b.Rate, "backup-rate", 32<<20, "at most this number of `bytes` of a scheduled backup a second; 0 is no limit")
	s3Flags(fs, &b.S3)
}

// flagSet is what the flags of the server and those of other commands have in common.
type flagSet interface {
	StringVar(p *string, name, value, usage string)
}

// s3Flags are how a store of s3://BUCKET/... is reached.
func s3Flags(fs flagSet, a *s3.Access) {
	fs.StringVar(&a.Endpoint, "s3-endpoint", "", "`URL` of the object store for backups in s3://...: https://HOST, or http://HOST for a connection in plain text; default: "+s3.DefaultEndpoint)
	fs.StringVar(&a.Region, "s3-region", "", "`region` of the bucket, if the store does not say it")
	fs.StringVar(&a.CredentialsFile, "s3-credentials-file", "", "`file` with the keys for the object store, as in ~/.aws/credentials, that only its owner can read; default: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, that file, or the role of the machine")
	fs.StringVar(&a.CA, "s3-ca", "", "PEM `file` of the authorities that sign the certificate of the object store; default: the system's")
}

// check checks the flags, and parses the schedule.
func (b *backupFlags) check(dataDir string) (err error) {
	switch {
	case b.Keep < 1 || b.Keep > maxBackupKeep:
		return fmt.Errorf("--backup-keep is %d; it must be between 1 and %d", b.Keep, maxBackupKeep)
	case b.FullEvery < 1 || b.FullEvery > recovery.MaxChain:
		return fmt.Errorf("--backup-full-every is %d; it must be between 1 and %d", b.FullEvery, recovery.MaxChain)
	case b.Rate != 0 && (b.Rate < job.MinBackupRate || b.Rate > job.MaxBackupRate):
		return fmt.Errorf("--backup-rate is %d; it must be 0, for no limit, or between %d and %d", b.Rate, job.MinBackupRate, job.MaxBackupRate)
	case b.S3 != (s3.Access{}) && !s3.Is(b.Dir):
		return errors.New("--s3-endpoint, --s3-region, --s3-credentials-file and --s3-ca need a --backup-dir of the form s3://BUCKET/PREFIX")
	case b.Schedule == "" && b.Dir == "":
		return nil
	case b.Schedule == "":
		return errors.New("--backup-dir needs --backup-schedule: when backups are made")
	case b.Dir == "":
		return errors.New("--backup-schedule needs --backup-dir: where backups are written")
	}
	of := &jobpb.Schedule{Spec: b.Schedule, Zone: b.Zone}
	if b.timetable, err = schedule.New(of, 0); err != nil {
		return backupFlagError(err)
	}
	// The name of a file has the second.
	if next := b.timetable.Next(0); next%1000 != 0 {
		return fmt.Errorf("--backup-schedule is %q; it takes whole seconds", b.Schedule)
	}
	if err := schedule.Check(of, time.Now().UnixMilli()); err != nil {
		return backupFlagError(err)
	}
	if s3.Is(b.Dir) {
		if b.bucket, err = b.S3.Open(b.Dir); err != nil {
			return fmt.Errorf("--backup-dir: %w", err)
		}
		return nil
	}
	return b.checkDir(dataDir)
}

// backupFlagError names the flag in place of the field of a schedule.
func backupFlagError(err error) error {
	if rest, found := strings.CutPrefix(err.Error(), "zone "); found {
		return errors.New("--backup-zone " + rest)
	}
	return errors.New("--backup-schedule " + strings.TrimPrefix(err.Error(), "spec "))
}

// checkDir rejects a directory within the data directory: it is lost with that.
func (b *backupFlags) checkDir(dataDir string) error {
	data, err := filepath.Abs(dataDir)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(b.Dir)
	if err != nil {
		return err
	}
	if within, err := filepath.Rel(data, dir); err == nil && within != ".." && !strings.HasPrefix(within, ".."+string(filepath.Separator)) {
		return fmt.Errorf("--backup-dir is %s, within --data-dir: it must be outside, best on another disk", b.Dir)
	}
	b.Dir = dir
	return nil
}

// schedule returns what the node needs; nil without a schedule.
func (b *backupFlags) schedule() *cluster.Backups {
	if b.timetable == nil {
		return nil
	}
	return &cluster.Backups{Timetable: b.timetable, Dir: b.Dir, Bucket: b.bucket, Keep: b.Keep, FullEvery: b.FullEvery, Rate: b.Rate}
}
