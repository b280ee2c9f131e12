//go:build chaos && next

package record

import (
	"encoding/binary"
	"fmt"

	"tarry/job"
	"tarry/job/jobpb"
)

// This build stands for the next release; see job/next.go. From the cluster version that only this build runs on a
// job's status also counts how often it was stamped.

const nextStatusVersion = StatusVersion + 1

func StatusFormat(version uint32) byte {
	if version < job.NextVersion {
		return StatusVersion
	}
	return nextStatusVersion
}

// nextStatus has the fields that version 2 adds to a status.
type nextStatus struct{ Stamps uint32 }

func (s *nextStatus) append(b []byte, format byte) []byte {
	if format < nextStatusVersion {
		return b
	}
	return binary.BigEndian.AppendUint32(b, s.Stamps)
}

func (s *nextStatus) decode(b []byte, format byte) ([]byte, error) {
	if format < nextStatusVersion {
		return b, nil
	}
	if len(b) < 4 {
		return nil, fmt.Errorf("job state record's stamps: %w", ErrShort)
	}
	s.Stamps = binary.BigEndian.Uint32(b)
	return b[4:], nil
}

func (s *nextStatus) Update(op *jobpb.Update) { s.Stamps += op.Stamps() }
