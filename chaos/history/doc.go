// Package history records what clients did to a queue and judges it.
//
// Every call is one Op with the instants of its start and end and its outcome:
// ok, fail (certainly not done) or unknown (nobody can tell; it stays open to the
// end). Check reads a whole history, taken after a full drain, and looks for
// violations of the invariants I1 to I8. It knows only what clients saw: it
// imports no room of the server, so a fault there cannot hide here.
//
// Start with Op in op.go, then Check in check.go.
package history
