package record

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

func AppendVersion(b []byte, version uint32, migrating []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, version), migrating...)
}

// readVersion reads the version of a state, and where its migration continues. The error is
// a job.VersionError if this release cannot run the version.
func readVersion(r pebble.Reader) (version uint32, migrating []byte, err error) {
	version = job.FirstVersion
	err = ReadKey(r, KeyVersion, func(value []byte) error {
		if len(value) < 4 {
			return fmt.Errorf("version record of %d bytes: %w", len(value), ErrShort)
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

// The record of a node that was removed is a version byte and when that was, in Unix
// milliseconds of the FSM clock.
const removedVersion = 1

func AppendRemoved(b []byte, atMS int64) []byte {
	return binary.BigEndian.AppendUint64(append(b, removedVersion), uint64(atMS))
}

func decodeRemoved(value []byte) (atMS int64, err error) {
	if err := checkVersion("record of a removed node", value, removedVersion); err != nil {
		return 0, err
	}
	if len(value) != 1+8 {
		return 0, fmt.Errorf("record of a removed node of %d bytes: %w", len(value), ErrShort)
	}
	return int64(binary.BigEndian.Uint64(value[1:])), nil
}

// ReadRemoved reads when each removed node was removed, by node id.
func ReadRemoved(r pebble.Reader) (map[string]int64, error) {
	removed := make(map[string]int64)
	err := Scan(r, []byte{SpaceRemoved}, []byte{SpaceRemoved + 1}, func(key, value []byte) error {
		at, err := decodeRemoved(value)
		if err != nil {
			return fmt.Errorf("node %.64q: %w", key[1:], err)
		}
		removed[string(key[1:])] = at
		return nil
	})
	return removed, err
}

// Who may become a member is one record, because the invitations are few: a version byte and a
// message. It is absent before the first change.
const admissionVersion = 1

var KeyAdmission = []byte{SpaceAdmission}

func EncodeAdmission(a *jobpb.Admission) ([]byte, error) {
	b, err := a.MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encode the record of admission: %w", err)
	}
	return append([]byte{admissionVersion}, b...), nil
}

// DecodeAdmission does not keep value.
func DecodeAdmission(value []byte) (*jobpb.Admission, error) {
	if err := checkVersion("record of admission", value, admissionVersion); err != nil {
		return nil, err
	}
	a := new(jobpb.Admission)
	if err := a.UnmarshalVTUnsafe(bytes.Clone(value[1:])); err != nil {
		return nil, fmt.Errorf("record of admission: %w", err)
	}
	for i, v := range a.Invitations {
		if v.Id == "" || i > 0 && a.Invitations[i-1].Id >= v.Id || (v.ServerId == "") != (v.UsedMs == 0) {
			return nil, fmt.Errorf("record of admission: invitation %d, %q, is out of order or incomplete", i, v.Id)
		}
	}
	return a, nil
}

// ReadAdmission returns who may become a member; never nil without an error.
func ReadAdmission(r pebble.Reader) (*jobpb.Admission, error) {
	a := new(jobpb.Admission)
	err := ReadKey(r, KeyAdmission, func(value []byte) (err error) {
		a, err = DecodeAdmission(value)
		return err
	})
	return a, err
}

// The record of a standby is a jobpb.StandbyState after the version of the format. It is there
// from cluster version 2 on, in states that are or were a standby.

func AppendStandby(b []byte, s *jobpb.StandbyState) ([]byte, error) {
	encoded, err := s.MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encode the record of a standby: %w", err)
	}
	return append(append(b, FormatVersion), encoded...), nil
}

func DecodeStandby(b []byte) (*jobpb.StandbyState, error) {
	if err := checkVersion("record of a standby", b, FormatVersion); err != nil {
		return nil, err
	}
	s := new(jobpb.StandbyState)
	if err := s.UnmarshalVTUnsafe(bytes.Clone(b[1:])); err != nil {
		return nil, fmt.Errorf("record of a standby: %w", err)
	}
	return s, nil
}

// The record of the sharding is a jobpb.Sharding after the version of the format. It is there from
// cluster version 2 on, in a cluster with several shards.

func AppendSharding(b []byte, s *jobpb.Sharding) ([]byte, error) {
	encoded, err := s.MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encode the record of the sharding: %w", err)
	}
	return append(append(b, FormatVersion), encoded...), nil
}

func DecodeSharding(b []byte) (*jobpb.Sharding, error) {
	if err := checkVersion("record of the sharding", b, FormatVersion); err != nil {
		return nil, err
	}
	s := new(jobpb.Sharding)
	if err := s.UnmarshalVTUnsafe(bytes.Clone(b[1:])); err != nil {
		return nil, fmt.Errorf("record of the sharding: %w", err)
	}
	if s.Shards < 2 || s.Group > s.Shards {
		return nil, fmt.Errorf("record of the sharding: group %d of %d shards", s.Group, s.Shards)
	}
	return s, nil
}
