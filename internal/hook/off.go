//go:build !chaos

package hook

import "time"

// Point does nothing in this build.
func Point(string) {}

// Clock is zero in this build.
func Clock() time.Duration { return 0 }

// Mutant is false in this build.
func Mutant(string) bool { return false }

// Trailing is zero in this build.
func Trailing() uint64 { return 0 }
