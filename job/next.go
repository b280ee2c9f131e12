//go:build chaos && next

package job

import "tarry/job/jobpb"

// This build stands for the release after this one, so that tests can upgrade to it
// and go back. It runs one cluster version more, which has an operation more (Stamp),
// a field more (Update.stamps), longer reasons and another format of the record that
// keeps what became of a job. The schema of the other build does not know of them.
const nextRelease = 1

func init() {
	ref := opSchema.fields[3].message.fields[1] // Finish.ref
	opSchema.set(jobpb.NextField, schemaField{name: "stamp", since: 2, message: &schema{name: "Stamp", fields: []schemaField{{}, ref}}})
	limits := *limitsOf[FirstVersion]
	limits.MaxReasonBytes *= 2
	limitsOf[2] = &limits
	opSchema.fields[16].message.set(jobpb.NextField, schemaField{name: "stamps", since: 2})
}

func decodeNext(op *jobpb.Op) error { return jobpb.DecodeNext(op) }
