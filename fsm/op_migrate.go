package fsm

import (
	"bytes"

	"tarry/job/jobpb"
)

// A record is written in the format of the cluster version, and read in the format of any
// version that the release supports. So before the version is raised an older release can
// read what a newer one writes. After that the leader proposes Migrate, with a bounded
// number of records each, until all records are rewritten. The version cannot be raised
// again before, so a release that supports the versions N and N+1 never reads a record
// of N-1.
//
// What a step rewrites must depend on the state as of the running transaction and not on
// the content of the store, because nodes divide the log into different batches.
//
// Specs and index entries are removed by SingleDelete (doc.go): a migration must not
// simply rewrite them.

// migration rewrites the records of a keyspace.
type migration struct {
	from []byte // the first key
	// step rewrites up to most records, from a key on, and returns the key to continue
	// at; nil: all is done.
	step func(x *tx, from []byte, most uint32) (next []byte, err error)
}

// migrate does a step of the migration, if one is under way.
func (x *tx) migrate(op *jobpb.Migrate, r *jobpb.Result) error {
	meta := &x.m.meta
	if meta.Migrating == nil {
		return nil
	}
	next, err := migrationTo(meta.Version).step(x, meta.Migrating, op.Max)
	if err != nil {
		return err
	}
	meta.Migrating = bytes.Clone(next)
	x.writeVersion()
	return nil
}

// Migrating reports whether records of the previous version remain to be rewritten.
func (m *Machine) Migrating() bool { return m.migrating.Load() }
