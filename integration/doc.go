// Package integration tests Tarry as its users run it: the built binary as real
// processes (and containers, if a Docker engine runs), faults by signals,
// clients over HTTP, and an independent checker of what they saw.
//
// chaos/history records and checks, chaos/workload makes the load,
// bench/localcluster runs the processes. The tests here import no package of the
// server. TARRY_FAULT_SECONDS sets how long the fault tests last (default 60 s,
// with -short 15 s), TARRY_IDLE_JOBS how many delayed jobs the idle node holds
// (default 50,000).
//
// Start with harness_test.go, then faults_test.go.
package integration
