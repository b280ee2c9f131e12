//go:build !chaos || !next

package job

// nextRelease is 1 in a build that stands for the next release; see next.go.
const nextRelease = 0
