//go:build !linux

package fault

// Limits returns nothing here: the limits of a process that runs cannot be changed.
func Limits() []Fault { return nil }
