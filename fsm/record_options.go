package fsm

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"tarry/job"
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
	if o.GetBackoff() == nil && len(o.GetHeaders()) == 0 && o.GetExpiresMs() == 0 && o.GetPushUrl() == "" {
		return "", nil
	}
	b, err := o.MarshalVT()
	return string(b), err
}

// sameOptions reports whether the options of an add are those of a job as it was added. Its
// trace does not count: a client that repeats an add may send that of another span.
func sameOptions(added *jobpb.JobOptions, spec *jobSpec) (bool, error) {
	encoded, err := encodeOptions(added)
	if err != nil || encoded == spec.options {
		return err == nil, err
	}
	encoded, err = withoutTrace(encoded)
	if err != nil {
		return false, err
	}
	old, err := withoutTrace(spec.options)
	return encoded == old, err
}

// withoutTrace returns encoded options without the headers of the trace.
func withoutTrace(options string) (string, error) {
	o, err := (&jobSpec{options: options}).decodeOptions()
	if err != nil || o == nil {
		return "", err
	}
	o.Headers = slices.DeleteFunc(o.Headers, func(h *jobpb.Header) bool { return job.IsTraceHeader(h.Name) })
	return encodeOptions(o)
}

// Numbers of the fields of JobOptions that are read without decoding the rest.
const (
	expiresField = 3 // expires_ms
	pushURLField = 4 // push_url
)

// expiresMS returns the expiry that the add asked for; 0: none.
func (spec *jobSpec) expiresMS() int64 {
	at := spec.option(expiresField)
	if at < 0 {
		return 0
	}
	v, _ := protowire.ConsumeVarint([]byte(spec.options[at:]))
	return int64(v)
}

// hasPushURL reports whether the job has a push_url.
func (spec *jobSpec) hasPushURL() bool { return spec.option(pushURLField) >= 0 }

// option returns where in the options the value of a field begins; -1: it is not set.
func (spec *jobSpec) option(field protowire.Number) int {
	for at := 0; at < len(spec.options); {
		b := []byte(spec.options[at:])
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return -1 // decodeOptions says so
		}
		if at += n; number == field {
			return at
		}
		if n = protowire.ConsumeFieldValue(number, kind, b[n:]); n < 0 {
			return -1
		}
		at += n
	}
	return -1
}
