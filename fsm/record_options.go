package fsm

import (
	"fmt"

	"tarry/job/jobpb"
)

// decodeOptions reads what few jobs have; nil when this one has nothing.
func (o *jobSpec) decodeOptions() (*jobpb.JobOptions, error) {
	if len(o.options) == 0 {
		return nil, nil
	}
	e := new(jobpb.JobOptions)
	if err := e.UnmarshalVTUnsafe([]byte(o.options)); err != nil {
		return nil, fmt.Errorf("a job's options do not decode: %w", err)
	}
	return e, nil
}

// encodeOptions is the form in which they are kept: empty for none.
func encodeOptions(e *jobpb.JobOptions) (string, error) {
	if e.GetBackoff() == nil && len(e.GetHeaders()) == 0 {
		return "", nil
	}
	b, err := e.MarshalVT()
	return string(b), err
}
