package fsm

import (
	"bytes"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tarry/job/jobpb"
)

// Who may become a member is one record, because the invitations are few: a version byte and a
// message. It is absent before the first change.
const admissionVersion = 1

var keyAdmission = []byte{spaceAdmission}

func encodeAdmission(a *jobpb.Admission) ([]byte, error) {
	b, err := a.MarshalVT()
	if err != nil {
		return nil, fmt.Errorf("encode the record of admission: %w", err)
	}
	return append([]byte{admissionVersion}, b...), nil
}

// decodeAdmission does not keep value.
func decodeAdmission(value []byte) (*jobpb.Admission, error) {
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

// readAdmission returns who may become a member; never nil without an error.
func readAdmission(r pebble.Reader) (*jobpb.Admission, error) {
	a := new(jobpb.Admission)
	err := readKey(r, keyAdmission, func(value []byte) (err error) {
		a, err = decodeAdmission(value)
		return err
	})
	return a, err
}

// Admission returns who may become a member.
func (v *View) Admission() (a *jobpb.Admission, err error) {
	err = v.read(func(r pebble.Reader) (err error) {
		a, err = readAdmission(r)
		return err
	})
	return a, err
}
