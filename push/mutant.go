package push

import (
	"tarry/internal/hook"
	"tarry/job/jobpb"
)

// unpostedEvery is how many jobs there are for each that a mutant does not post.
const unpostedEvery = 10

// unposted says that a mutant is to finish a job without a post. A default build
// cannot be one; see package hook.
func unposted(j *jobpb.Reserved) bool {
	return hook.Mutant(hook.FinishUnposted) && j.Seq%unpostedEvery == 0
}
