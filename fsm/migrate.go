package fsm

import (
	"bytes"

	"tarry/job/jobpb"
)

// Formats and the cluster version. A record is written in the format of the cluster
// version, and read in that of any version that the release runs: so what a newer
// release writes before the version is raised, the older can read. After the raise the
// leader proposes Migrate until the records of the version before are written anew,
// a bounded number with each. Jobs are worked on meanwhile. The version cannot be
// raised again before that is done, so a release that runs the versions N and N+1
// never meets a record of N-1.
//
// What a step rewrites follows from the state as the running transaction has left it,
// not from what the store happens to have: nodes cut the log into different batches.
//
// A migration that writes origins or index entries a second time must mind that they
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
	if op.Max < 1 || op.Max > x.limits().MaxMigrate {
		return x.refuse(r, jobpb.Code_INVALID, "max is %d; it must be between 1 and %d", op.Max, x.limits().MaxMigrate)
	}
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
