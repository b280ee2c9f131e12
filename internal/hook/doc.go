// Package hook lets the fault harness control a node from inside: kill it at a named
// point of its write path, shift its clock, or make it a mutant that breaks a
// guarantee, which shows that the checker of histories detects it.
//
// All of it exists only in binaries built with the tag "chaos" (on.go). Without
// the tag (off.go) every function is empty or constant and is compiled away;
// TestDefaultBinaryHasNoHooks checks that. The packages call these functions in any
// build.
//
// Environment variables control a binary with hooks:
//
//	TARRY_HOOK_KILL    "before-apply:40": SIGKILL at the 40th time that point is passed
//	TARRY_HOOK_CLOCK   a file with milliseconds as text, which are added to the clock
//	TARRY_HOOK_MUTANT  the name of a mutant
//	TARRY_HOOK_TRAILING  how many log entries are kept behind a snapshot, and are between two
//
// The package imports nothing of the project.
package hook
