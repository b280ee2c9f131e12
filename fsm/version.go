package fsm

import (
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job"
	"tarry/job/jobpb"
)

// The cluster version stands in a record of its own, which is written when it is
// raised. It begins with the version in every release, so that any release can say
// that it cannot run a state, whatever has become of the other records.

func appendVersion(b []byte, version uint32) []byte {
	return binary.BigEndian.AppendUint32(b, version)
}

// readVersion reads the version of a state. It fails with a job.VersionError when
// this release cannot run it.
func readVersion(r pebble.Reader) (version uint32, err error) {
	version = job.FirstVersion
	err = readKey(r, keyVersion, func(value []byte) error {
		if len(value) < 4 {
			return fmt.Errorf("version record of %d bytes: %w", len(value), errShort)
		}
		version = binary.BigEndian.Uint32(value)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return version, job.ReleaseVersions().Check(version)
}

// Version is the cluster version as of the last commit.
func (m *Machine) Version() uint32 { return m.version.Load() }

// raiseVersion raises the cluster version. One that this release cannot run ends the
// node: what follows in the log is not for it.
func (x *tx) raiseVersion(op *jobpb.RaiseVersion) error {
	if op.To <= x.m.meta.version {
		return nil
	}
	if err := job.ReleaseVersions().Check(op.To); err != nil {
		return err
	}
	x.m.meta.version = op.To
	x.value = appendVersion(x.value[:0], op.To)
	must(x.batch.Set(keyVersion, x.value, nil))
	x.cluster = true
	return nil
}
