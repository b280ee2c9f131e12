//go:build chaos && next

package oplog

import (
	"slices"

	"tarry/job"
	"tarry/job/jobpb"
)

// What the next release brings: see job.NextVersion.

func init() {
	ref := *opSchema.field("finish").message.field("ref")
	opSchema.set(jobpb.NextField, schemaField{
		name: "stamp", since: job.NextVersion, message: &schema{name: "Stamp", fields: []schemaField{{}, ref}},
	})
	opSchema.field("update").message.set(jobpb.NextField, schemaField{name: "stamps", since: job.NextVersion})
}

// field returns a field, which must exist.
func (s *schema) field(name string) *schemaField {
	return &s.fields[slices.IndexFunc(s.fields, func(f schemaField) bool { return f.name == name })]
}

func decodeNext(op *jobpb.Op) error { return jobpb.DecodeNext(op) }
