package schedule

import (
	"sync"
	"time"
	_ "time/tzdata" // a container may have no tables of its own

	"tarry/job"
)

// zones caches the zones that were requested and exist: some hundred at most.
var zones sync.Map // name -> *time.Location

// checkZoneName refuses names that systems give to files beside the zones: localtime and posixrules
// are another zone on each node, right/ has leap seconds, and none is in the binary. The names of
// zones begin with a capital letter.
func checkZoneName(name string) error {
	if name[0] < 'A' || name[0] > 'Z' || name == "Factory" {
		return job.Invalid("zone", "is %.60q, which is not the same on each node; it takes the name of an IANA time zone, such as UTC or Europe/Berlin", name)
	}
	return nil
}

// zone finds a time zone by its IANA name. It rejects "Local", which would mean another
// zone on each node.
func zone(name string) (*time.Location, error) {
	if l, ok := zones.Load(name); ok {
		return l.(*time.Location), nil
	}
	l, err := time.LoadLocation(name)
	if name == "" || name == "Local" || err != nil {
		return nil, job.Invalid("zone", "is %.60q; it takes the name of an IANA time zone, such as UTC or Europe/Berlin", name)
	}
	zones.Store(name, l)
	return l, nil
}
