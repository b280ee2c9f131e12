//go:build !unix

package beanstalk

import "time"

// processorTime is not known on this system.
func processorTime() (user, system time.Duration) { return 0, 0 }
