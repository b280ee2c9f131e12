// Package hook lets the fault harness reach into a node: kill it at a named point
// of its write path, set its clock off, and make it a mutant that breaks a
// promise, so that the checker of histories can be seen to notice.
//
// All of it exists only in binaries built with the tag "chaos" (on.go). Without
// the tag (off.go) every function is empty or constant and is compiled away;
// TestDefaultBinaryHasNoHooks holds that. The rooms call these functions without
// asking which build they are in.
//
// What a hooked binary does is told by its environment:
//
//	TARRY_HOOK_KILL    "before-apply:40": SIGKILL at the 40th time that point is passed
//	TARRY_HOOK_CLOCK   a file with milliseconds as text, which are added to the clock
//	TARRY_HOOK_MUTANT  the name of a mutant
//	TARRY_HOOK_TRAILING  how many log entries stay behind a snapshot, and lie between two
//
// The package imports nothing of the project.
package hook
