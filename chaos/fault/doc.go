// Package fault breaks a cluster and heals it again.
//
// A Fault acts from outside: signals, files, the network, the operators' calls of
// the server. It may know how nodes run (bench/localcluster) and how to disturb them
// (chaos/network, chaos/disk), and nothing of the server's code. It does not check
// jobs; chaos/history does. It reports, by Env.Violate, when a node did not behave as
// the fault requires.
//
// Each file lists its faults in one function, and the runner adds up the lists.
// Start with Fault and Env in fault.go, then process.go.
package fault
