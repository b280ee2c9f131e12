package cli

import (
	"runtime/debug"
)

// Revision returns the commit that the binary was built from, with -dirty if files had
// changed; "unknown" if the build did not record it.
func Revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	commit, dirty := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	return commit + dirty
}

// Version is the release of this binary.
var Version = "development"
