//go:build chaos && next

package job

import (
	"slices"

	"tarry/job/jobpb"
)

// This build stands for the next release, so that tests can upgrade to it and go back. It
// also runs the cluster version after the newest of this release, which adds an operation (Stamp), a field (Update.stamps),
// longer reasons and another format of a job's status. They are not in the .proto file.
const nextRelease = 1

// NextVersion is the cluster version that only this build runs.
const NextVersion = MaxVersion

func init() {
	ref := *opSchema.field("finish").message.field("ref")
	opSchema.set(jobpb.NextField, schemaField{name: "stamp", since: NextVersion, message: &schema{name: "Stamp", fields: []schemaField{{}, ref}}})
	limits := *limitsOf[thisRelease]
	limits.MaxReasonBytes *= 2
	limitsOf[NextVersion] = &limits
	opSchema.field("update").message.set(jobpb.NextField, schemaField{name: "stamps", since: NextVersion})
}

// field returns a field, which must exist.
func (s *schema) field(name string) *schemaField {
	return &s.fields[slices.IndexFunc(s.fields, func(f schemaField) bool { return f.name == name })]
}

func decodeNext(op *jobpb.Op) error { return jobpb.DecodeNext(op) }
