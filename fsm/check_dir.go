package fsm

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"tarry/fsm/check"
	"tarry/fsm/internal/record"
	"tarry/fsm/store"
	"tarry/fsm/view"
	"tarry/job/jobpb"
)

// DirReport is what CheckDir has read. It is zero for a directory to which no state was ever
// written.
type DirReport struct {
	Applied        // how far the log is applied, the durable mark included
	Durable uint64 // the index up to which the log is no longer needed
	// ClusterID is empty before the cluster has an id.
	ClusterID string
	Version   uint32 // the cluster's
	Totals    *jobpb.Totals
	Tables    store.Tables
	Records   uint64 // about as many were compared with each other
}

// CheckOptions configures CheckDir.
type CheckOptions struct {
	FS vfs.FS // nil: vfs.Default
	// Progress is called now and then with what was read so far. An error ends the check and is
	// returned. nil: nobody asks.
	Progress func(*DirReport) error
}

// CheckDir reads the whole state in dir, the directory that Open is given, which nothing may use
// meanwhile: the checksums of all blocks of all files in use, then every record, and whether the
// records agree. It changes nothing in the directory, and makes no lock there. Its memory is
// bounded, except that it grows with the topics.
//
// The error has what is wrong; of damaged tables it has all, joined. The report has what could be
// read all the same. Damaged is true for the error if files are not what was written.
func CheckDir(dir string, o CheckOptions) (DirReport, error) {
	var report DirReport
	progress := func() error {
		if o.Progress == nil {
			return nil
		}
		return o.Progress(&report)
	}
	read := func(t store.Tables) error {
		report.Tables = t
		return progress()
	}
	err := store.Check(dir, Options{FS: o.FS}.withDefaults().store(), read, func(db *pebble.DB) error {
		meta, err := record.ReadMeta(db)
		if err != nil {
			return err
		}
		report.Applied, report.Durable = record.Furthest(meta.Applied(), meta.Durable), meta.Durable.Index
		report.ClusterID, report.Version, report.Totals = meta.ClusterID, meta.Version, meta.Totals()
		if _, _, err := load(db, Options{}.withDefaults()); err != nil {
			return err
		}
		return checkRecords(db, func(records uint64) error {
			report.Records = records
			return progress()
		})
	})
	if err != nil {
		err = fmt.Errorf("check the state in %s: %w", dir, err)
	}
	return report, err
}

// checkRecords checks the records of a store that has no machine. An error of looked ends it.
func checkRecords(db *pebble.DB, looked func(records uint64) error) error {
	v := view.New(0, db.NewSnapshot(), nil)
	var stop error
	err := check.Records(v, func(records uint64) {
		if stop = looked(records); stop != nil {
			v.Stop()
		}
	})
	if stop != nil {
		err = stop
	}
	return errors.Join(err, v.Close())
}
