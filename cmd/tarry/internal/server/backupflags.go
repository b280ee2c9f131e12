package server

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

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

func (b *backupFlags) settings() []Setting {
	return []Setting{
		{Name: "backup-schedule", To: &b.Schedule,
			help:   "`times` at which the leader writes a backup to --backup-dir, as for recurring jobs: a cron expression such as \"30 3 * * *\", @daily, or @every 6h; the same on all nodes; default: never (docs/backup.md)",
			Values: "a cron expression of 5 or 6 fields, a name such as `@daily`, or `@every` with a duration in whole seconds",
			Why:    "A directory for backups must be chosen first."},
		{Name: "backup-zone", To: &b.Zone, def: "UTC", Values: "the name of an IANA time zone, such as `Europe/Berlin`",
			help: "time `zone` of --backup-schedule",
			Why:  "All nodes have UTC, and no hour of it occurs twice."},
		{Name: "backup-dir", To: &b.Dir, Values: "a path outside of the data directory, or `s3://BUCKET/PREFIX`",
			help: "`directory` for scheduled backups, which is made unless its parent is missing: one that all nodes share, or one of each node; or s3://BUCKET/PREFIX, a place in an object store (docs/backup.md)",
			Why:  "Only the operator knows a disk that does not fail together with the node's."},
		{Name: "backup-keep", To: &b.Keep, def: 7, check: between(b.Keep, 1, maxBackupKeep), Values: "1 to 10,000",
			help: "`number` of scheduled backups to keep in --backup-dir; older ones of this cluster are removed after the next one is complete, except those on which a kept one builds",
			Why:  "A week of daily backups."},
		{Name: "backup-full-every", To: &b.FullEvery, def: 1, check: between(b.FullEvery, 1, recovery.MaxChain), Values: "1 to 100",
			help: "of this `number` of scheduled backups one is whole, and each other has what has changed since the one before; 1: all are whole (docs/backup.md)",
			Why:  "Each file can be restored on its own. A chain is as good as its oldest file."},
		{Name: "backup-rate", To: &b.Rate, def: int64(32 << 20), Values: "65,536 to 1,099,511,627,776, or 0 for no limit",
			check: refusedIf(b.Rate != 0 && (b.Rate < job.MinBackupRate || b.Rate > job.MaxBackupRate),
				"is %d; it must be 0, for no limit, or between %d and %d", b.Rate, job.MinBackupRate, job.MaxBackupRate),
			help: "at most this number of `bytes` of a scheduled backup a second; 0 is no limit",
			Why:  "The leader serves clients meanwhile: a tenth of what a usual SSD writes, and 100 GB within the hour."},
	}
}

// S3Flags are how a store of s3://BUCKET/... is reached.
func S3Flags(fs *pflag.FlagSet, a *s3.Access) {
	for _, s := range s3Settings(a) {
		fs.StringVar(s.To.(*string), s.Name, "", s.help)
	}
}

func s3Settings(a *s3.Access) []Setting {
	return []Setting{
		{Name: "s3-endpoint", To: &a.Endpoint, Values: "`https://HOST` or `http://HOST`, with a port if needed",
			help: "`URL` of the object store for backups in s3://...: https://HOST, or http://HOST for a connection in plain text; default: " + s3.DefaultEndpoint,
			Why:  "The store that the names of this protocol are from; every other one has its own address."},
		{Name: "s3-region", To: &a.Region, Values: "the name of a region of the store",
			help: "`region` of the bucket, if the store does not say it",
			Why:  "Most stores say it."},
		{Name: "s3-credentials-file", To: &a.CredentialsFile, Values: "a file with mode 0600",
			help: "`file` with the keys for the object store, as in ~/.aws/credentials, that only its owner can read; default: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, that file, or the role of the machine",
			Why:  "The variables and files that other programs for such stores use, too."},
		{Name: "s3-ca", To: &a.CA, Values: "a PEM file",
			help: "PEM `file` of the authorities that sign the certificate of the object store; default: the system's",
			Why:  "Stores outside of one's own network have certificates that the system trusts."},
	}
}

// check checks how the flags go together, and parses the schedule.
func (b *backupFlags) check(dataDir string) (err error) {
	switch {
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
