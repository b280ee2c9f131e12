package record

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"tarry/job"
	"tarry/job/jobpb"
)

// DecodeOptions returns the job's options; nil: none.
func (spec *Spec) DecodeOptions() (*jobpb.JobOptions, error) {
	if len(spec.Options) == 0 {
		return nil, nil
	}
	o := new(jobpb.JobOptions)
	if err := o.UnmarshalVTUnsafe([]byte(spec.Options)); err != nil {
		return nil, fmt.Errorf("a job's options do not decode: %w", err)
	}
	return o, nil
}

// EncodeOptions returns the stored form of options; empty: none.
func EncodeOptions(o *jobpb.JobOptions) (string, error) {
	if o.GetBackoff() == nil && len(o.GetHeaders()) == 0 && o.GetExpiresMs() == 0 && o.GetPushUrl() == "" {
		return "", nil
	}
	b, err := o.MarshalVT()
	return string(b), err
}

// SameOptions reports whether the options of an add are those of a job as it was added. Its
// trace does not count: a client that repeats an add may send that of another span.
func SameOptions(added *jobpb.JobOptions, spec *Spec) (bool, error) {
	encoded, err := EncodeOptions(added)
	if err != nil || encoded == spec.Options {
		return err == nil, err
	}
	encoded, err = withoutTrace(encoded)
	if err != nil {
		return false, err
	}
	old, err := withoutTrace(spec.Options)
	return encoded == old, err
}

// withoutTrace returns encoded options without the headers of the trace.
func withoutTrace(options string) (string, error) {
	o, err := (&Spec{Options: options}).DecodeOptions()
	if err != nil || o == nil {
		return "", err
	}
	o.Headers = slices.DeleteFunc(o.Headers, func(h *jobpb.Header) bool { return job.IsTraceHeader(h.Name) })
	return EncodeOptions(o)
}

// Numbers of the fields of JobOptions that are read without decoding the rest.
const (
	expiresField = 3 // expires_ms
	pushURLField = 4 // push_url
)

// expiresMS returns the expiry that the add asked for; 0: none.
func (spec *Spec) expiresMS() int64 {
	at := spec.option(expiresField)
	if at < 0 {
		return 0
	}
	v, _ := protowire.ConsumeVarint([]byte(spec.Options[at:]))
	return int64(v)
}

// HasPushURL reports whether the job has a push_url.
func (spec *Spec) HasPushURL() bool { return spec.option(pushURLField) >= 0 }

// option returns where in the options the value of a field begins; -1: it is not set.
func (spec *Spec) option(field protowire.Number) int {
	for at := 0; at < len(spec.Options); {
		b := []byte(spec.Options[at:])
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return -1 // DecodeOptions says so
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
