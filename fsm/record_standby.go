package fsm

import (
	"bytes"
	"fmt"

	"tarry/job/jobpb"
)

// The record of a standby is a jobpb.StandbyState after the version of the format. It is there
// from cluster version 2 on, in states that are or were a standby.

func appendStandby(b []byte, s *jobpb.StandbyState) ([]byte, error) {
	encoded, err := s.MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encode the record of a standby: %w", err)
	}
	return append(append(b, formatVersion), encoded...), nil
}

func decodeStandby(b []byte) (*jobpb.StandbyState, error) {
	if err := checkVersion("record of a standby", b, formatVersion); err != nil {
		return nil, err
	}
	s := new(jobpb.StandbyState)
	if err := s.UnmarshalVTUnsafe(bytes.Clone(b[1:])); err != nil {
		return nil, fmt.Errorf("record of a standby: %w", err)
	}
	return s, nil
}
