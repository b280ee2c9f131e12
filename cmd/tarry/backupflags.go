package main

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"tarry/cluster"
	"tarry/job"
	"tarry/job/jobpb"
	"tarry/schedule"
)

// maxBackupKeep bounds the files whose headers a node reads.
const maxBackupKeep = 10_000

// backupFlags are the settings of scheduled backups.
type backupFlags struct {
	Schedule, Zone, Dir string
	Keep                int
	Rate                int64

	timetable *schedule.Timetable // nil without a schedule
}

func (b *backupFlags) flags(fs *flag.FlagSet) {
	fs.StringVar(&b.Schedule, "backup-schedule", "", "`times` at which the leader writes a backup to --backup-dir, as for recurring jobs: a cron expression such as \"30 3 * * *\", @daily, or @every 6h; the same on all nodes; default: never (docs/backup.md)")
	fs.StringVar(&b.Zone, "backup-zone", "UTC", "time `zone` of --backup-schedule")
	fs.StringVar(&b.Dir, "backup-dir", "", "`directory` for scheduled backups, which is made unless its parent is missing: one that all nodes share, or one of each node (docs/backup.md)")
	fs.IntVar(&b.Keep, "backup-keep", 7, "`number` of scheduled backups to keep in --backup-dir; older ones of this cluster are removed after the next one is complete")
	fs.Int64Var(&b.Rate, "backup-rate", 32<<20, "at most this number of `bytes` of a scheduled backup a second; 0 is no limit")
}

// check checks the flags, and parses the schedule.
func (b *backupFlags) check(dataDir string) (err error) {
	switch {
	case b.Keep < 1 || b.Keep > maxBackupKeep:
		return fmt.Errorf("--backup-keep is %d; it must be between 1 and %d", b.Keep, maxBackupKeep)
	case b.Rate != 0 && (b.Rate < job.MinBackupRate || b.Rate > job.MaxBackupRate):
		return fmt.Errorf("--backup-rate is %d; it must be 0, for no limit, or between %d and %d", b.Rate, job.MinBackupRate, job.MaxBackupRate)
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
	return &cluster.Backups{Timetable: b.timetable, Dir: b.Dir, Keep: b.Keep, Rate: b.Rate}
}
