package job

import "fmt"

// The cluster version says what a cluster's log and state may hold: operations,
// fields, limits, formats of records. It stands in the replicated state, and begins
// with FirstVersion. When all members run a higher one, the leader raises it; it
// never goes down. What a release may do at a version is fixed with the first
// release that runs it: two releases at one version do the same.
//
// A release runs MinVersion to MaxVersion: it opens data of either, and works beside
// nodes whose MaxVersion is its MinVersion or more.
const (
	FirstVersion = 1

	MinVersion = 1
	MaxVersion = FirstVersion + nextRelease
)

// Versions are the cluster versions that a node runs.
type Versions struct{ Min, Max uint32 }

// ReleaseVersions are those of this release.
func ReleaseVersions() Versions { return Versions{MinVersion, MaxVersion} }

// Check returns a VersionError unless version is one of v.
func (v Versions) Check(version uint32) error {
	if version < v.Min || version > v.Max {
		return &VersionError{Version: version, Runs: v}
	}
	return nil
}

func (v Versions) String() string {
	if v.Min == v.Max {
		return fmt.Sprint(v.Min)
	}
	return fmt.Sprintf("%d-%d", v.Min, v.Max)
}

// VersionError is the failure of a node that cannot run the cluster's version.
type VersionError struct {
	Version uint32 // the cluster's
	Runs    Versions
}

func (e *VersionError) Error() string {
	age := "an older"
	if e.Version > e.Runs.Max {
		age = "a newer"
	}
	return fmt.Sprintf("the cluster has version %d, but the node's release runs only %s; start %s release there, one that runs version %d (the node's data is left as it is)",
		e.Version, e.Runs, age, e.Version)
}
