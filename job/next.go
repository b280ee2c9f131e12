//go:build chaos && next

package job

// This build stands for the next release, so that tests can upgrade to it and go back. It
// also runs the cluster version after the newest of this release, which adds an operation (Stamp), a field (Update.stamps),
// longer reasons and another format of a job's status. They are not in the .proto file.
const nextRelease = 1

// NextVersion is the cluster version that only this build runs.
const NextVersion = MaxVersion

func init() {
	limits := *limitsOf[thisRelease]
	limits.MaxReasonBytes *= 2
	limitsOf[NextVersion] = &limits
}
