package fsm

import (
	"bytes"

	"tarry/fsm/internal/record"
	"tarry/job"
	"tarry/job/jobpb"
)

// Version returns the cluster version as of the last commit.
func (m *Machine) Version() uint32 { return m.version.Load() }

// raiseVersion raises the cluster version. A version that this release cannot run stops the
// node.
func (x *tx) raiseVersion(op *jobpb.RaiseVersion, r *jobpb.Result) error {
	meta := &x.m.meta
	if op.To <= meta.Version {
		return nil
	}
	if err := job.ReleaseVersions().Check(op.To); err != nil {
		return err
	}
	if meta.Migrating != nil || op.To != meta.Version+1 {
		return x.refuse(r, jobpb.Code_CONDITION_FAILED,
			"the cluster version is %d (its records are complete: %t); it is raised by one, when they are", meta.Version, meta.Migrating == nil)
	}
	meta.Version = op.To
	x.m.limits = x.m.options.limitsAt(op.To)
	if m := migrationTo(op.To); m != nil {
		meta.Migrating = m.from
	}
	x.writeVersion()
	x.versionRaised()
	return nil
}

func (x *tx) writeVersion() {
	meta := &x.m.meta
	x.value = record.AppendVersion(x.value[:0], meta.Version, meta.Migrating)
	must(x.batch.Set(record.KeyVersion, x.value, nil))
	x.cluster = true
}

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
