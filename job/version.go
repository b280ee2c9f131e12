package job

import "fmt"

// The cluster version determines what a cluster's log and state may have: operations,
// fields, limits, formats of records. It is in the replicated state and begins with
// FirstVersion. When all members run a higher one, the leader raises it; it never goes
// down. A version is fixed by the first release that runs it: at one version all releases
// do the same.
//
// A release runs MinVersion to MaxVersion: it opens their data, and works in a cluster with
// nodes whose MaxVersion is at least its MinVersion.
const (
	FirstVersion = 1

	MinVersion = 1
	MaxVersion = thisRelease + nextRelease

	// thisRelease is the newest version that this release runs: 2 adds what the table since
	// and the rows of operations name.
	thisRelease = 2
)

// Versions is the range of cluster versions that a node runs.
type Versions struct{ Min, Max uint32 }

// ReleaseVersions returns the range of this release.
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

// VersionError is the error of a node that cannot run the cluster's version.
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
