// Package integration tests Tarry as its users meet it: the built binary as real
// processes (and containers, where a Docker engine answers), faults by signals,
// clients over plain HTTP, and an independent judge over what they saw.
//
// chaos/history records and judges, chaos/workload makes the load,
// bench/localcluster runs the processes. The tests here import no room of the
// server. TARRY_FAULT_SECONDS sets how long the fault tests last (default 60,
// with -short 15), TARRY_IDLE_JOBS how many delayed jobs the idle node holds
// (default 50,000).
//
// Start with harness_test.go, then faults_test.go.
package integration
