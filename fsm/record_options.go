package fsm

import (
	"fmt"

	"tarry/job/jobpb"
)

// decodeOptions returns the job's options; nil: none.
func (spec *jobSpec) decodeOptions() (*jobpb.JobOptions, error) {
	if len(spec.options) == 0 {
		return nil, nil
	}
	o := new(jobpb.JobOptions)
	if err := o.UnmarshalVTUnsafe([]byte(spec.options)); err != nil {
		return nil, fmt.Errorf("a job's options do not decode: %w", err)
	}
	return o, nil
}

// encodeOptions returns the stored form of options; empty: none.
func encodeOptions(o *jobpb.JobOptions) (string, error) {
	if o.GetBackoff() == nil && len(o.GetHeaders()) == 0 {
		return "", nil
	}
	b, err := o.MarshalVT()
	return string(b), err
}
