//go:build !unix

package beanstalk

import "time"

// processorTime returns 0: it is unknown on this system.
func processorTime() (user, system time.Duration) { return 0, 0 }
