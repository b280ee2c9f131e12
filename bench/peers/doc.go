// Command peers measures Tarry beside the queues that its users would otherwise pick:
// NATS JetStream, beanstalkd, and Redis with the delay queue that teams write for it.
// All run on this machine in one run, as real processes, each synced to disk before it
// replies. `make bench-peers` calls it.
//
// One round measures every system in every group of workloads, in shuffled order and on
// new processes. The results are JSON, from which the tables and plots of
// docs/benchmarks.md are made (-pages does only that).
//
// Start with main.go. plan.go says what is measured, workload.go how, and each system has
// a file. It is a module of its own and not part of the workspace: there, the versions that
// the peers require would become those of the product.
package main
