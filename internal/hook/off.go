//go:build !chaos

package hook

import "time"

// Point does nothing in this build.
func Point(string) {}

// Clock returns 0 in this build.
func Clock() time.Duration { return 0 }

// Mutant reports false in this build.
func Mutant(string) bool { return false }

// Trailing returns 0 in this build.
func Trailing() uint64 { return 0 }
