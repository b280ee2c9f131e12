package fsm

import (
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
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the cluster version is %d (its records are complete: %t); it is raised by one, when they are", meta.Version, meta.Migrating == nil)
	}
	meta.Version = op.To
	x.m.limits = x.m.options.limits(op.To)
	if m := migrationTo(op.To); m != nil {
		meta.Migrating = m.from
	}
	x.writeVersion()
	return nil
}

func (x *tx) writeVersion() {
	meta := &x.m.meta
	x.value = record.AppendVersion(x.value[:0], meta.Version, meta.Migrating)
	must(x.batch.Set(record.KeyVersion, x.value, nil))
	x.cluster = true
}
