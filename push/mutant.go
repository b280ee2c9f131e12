//go:build chaos

package push

import (
	"tarry/internal/hook"
	"tarry/job/jobpb"
)

// unpostedEvery is how many jobs there are for each that a mutant does not post.
const unpostedEvery = 10

// unposted reports whether this process is a mutant that must finish j without a post;
// see package hook.
func unposted(j *jobpb.Reserved) bool {
	return hook.Mutant(hook.FinishUnposted) && j.Seq%unpostedEvery == 0
}
