package fsm

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

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
	if o.GetBackoff() == nil && len(o.GetHeaders()) == 0 && o.GetExpiresMs() == 0 {
		return "", nil
	}
	b, err := o.MarshalVT()
	return string(b), err
}

// expiresField is the number of JobOptions.expires_ms.
const expiresField = 3

// expiresMS returns the expiry that the add asked for; 0: none. It decodes nothing else.
func (spec *jobSpec) expiresMS() int64 {
	for b := []byte(spec.options); len(b) > 0; {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return 0 // decodeOptions says so
		}
		b = b[n:]
		if number == expiresField && kind == protowire.VarintType {
			v, _ := protowire.ConsumeVarint(b)
			return int64(v)
		}
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return 0
		}
		b = b[n:]
	}
	return 0
}
