package fsm

import (
	"bytes"

	"tarry/job/jobpb"
)

// Formats and the cluster version. A record is written in the format of the cluster
// version, and read in the format of any version that the release supports. So an older
// release can read what a newer one writes before the version is raised. After the
// raise the leader proposes Migrate until all records of the previous version are
// rewritten, a bounded number with each. Jobs are processed meanwhile. The version
// cannot be raised again before that is done, so a release that supports the versions N
// and N+1 never reads a record of N-1.
//
// What a step rewrites must depend on the state of the running transaction and not on
// what the store has, because nodes divide the log into different batches.
//
// A migration that rewrites specs or index entries must take into account that they
// are removed by SingleDelete (doc.go).

// migration rewrites the records of a keyspace.
type migration struct {
	from []byte // the first key
	// step writes up to most records anew, from a key on, and returns the key to go
	// on with; nil: that was all.
	step func(x *tx, from []byte, most uint32) (next []byte, err error)
}

// migrate does a step of the migration to the present version, if one is under way.
func (x *tx) migrate(op *jobpb.Migrate, r *jobpb.Result) error {
	meta := &x.m.meta
	if meta.migrating == nil {
		return nil
	}
	next, err := migrationTo(meta.version).step(x, meta.migrating, op.Max)
	if err != nil {
		return err
	}
	meta.migrating = bytes.Clone(next)
	x.writeVersion()
	return nil
}

// Migrating reports whether records of the version before are still to be written
// anew.
func (m *Machine) Migrating() bool { return m.migrating.Load() }
