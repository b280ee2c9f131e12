package fsm

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job"
	"tarry/job/jobpb"
)

// The cluster version has a record of its own, which begins with the version in every
// release: so any release can recognise a state that it cannot run. The rest is the key
// at which the migration to that version continues; empty: it is done.

func appendVersion(b []byte, version uint32, migrating []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, version), migrating...)
}

// readVersion reads the version of a state, and where its migration continues. The error is
// a job.VersionError if this release cannot run the version.
func readVersion(r pebble.Reader) (version uint32, migrating []byte, err error) {
	version = job.FirstVersion
	err = readKey(r, keyVersion, func(value []byte) error {
		if len(value) < 4 {
			return fmt.Errorf("version record of %d bytes: %w", len(value), errShort)
		}
		version = binary.BigEndian.Uint32(value)
		if len(value) > 4 {
			migrating = bytes.Clone(value[4:])
		}
		return nil
	})
	if err == nil {
		err = job.ReleaseVersions().Check(version)
	}
	if err == nil && migrating != nil {
		// There are records of the previous version.
		err = job.ReleaseVersions().Check(version - 1)
	}
	if err != nil {
		return 0, nil, err
	}
	return version, migrating, nil
}

// Version returns the cluster version as of the last commit.
func (m *Machine) Version() uint32 { return m.version.Load() }

// raiseVersion raises the cluster version. A version that this release cannot run stops the
// node.
func (x *tx) raiseVersion(op *jobpb.RaiseVersion, r *jobpb.Result) error {
	meta := &x.m.meta
	if op.To <= meta.version {
		return nil
	}
	if err := job.ReleaseVersions().Check(op.To); err != nil {
		return err
	}
	if meta.migrating != nil || op.To != meta.version+1 {
		return x.refuse(r, jobpb.Code_CONDITION_FAILED, "the cluster version is %d (its records are complete: %t); it is raised by one, when they are", meta.version, meta.migrating == nil)
	}
	meta.version = op.To
	x.m.limits = x.m.options.limits(op.To)
	if m := migrationTo(op.To); m != nil {
		meta.migrating = m.from
	}
	x.writeVersion()
	return nil
}

func (x *tx) writeVersion() {
	meta := &x.m.meta
	x.value = appendVersion(x.value[:0], meta.version, meta.migrating)
	must(x.batch.Set(keyVersion, x.value, nil))
	x.cluster = true
}
