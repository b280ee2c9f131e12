//go:build chaos && next

package job

import (
	"slices"

	"tarry/job/jobpb"
)

// This build stands for the release after this one, so that tests can upgrade to it
// and go back. It runs one cluster version more, which has an operation more (Stamp),
// a field more (Update.stamps), longer reasons and another format of the record that
// keeps what became of a job. The schema of the other build does not know of them.
const nextRelease = 1

func init() {
	ref := *opSchema.field("finish").message.field("ref")
	opSchema.set(jobpb.NextField, schemaField{name: "stamp", since: 2, message: &schema{name: "Stamp", fields: []schemaField{{}, ref}}})
	limits := *limitsOf[FirstVersion]
	limits.MaxReasonBytes *= 2
	limitsOf[2] = &limits
	opSchema.field("update").message.set(jobpb.NextField, schemaField{name: "stamps", since: 2})
}

// field finds a field that is there.
func (s *schema) field(name string) *schemaField {
	return &s.fields[slices.IndexFunc(s.fields, func(f schemaField) bool { return f.name == name })]
}

func decodeNext(op *jobpb.Op) error { return jobpb.DecodeNext(op) }
