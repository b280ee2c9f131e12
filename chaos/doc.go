// Command chaos starts a real cluster, puts it under recorded load, injects all faults
// that this machine supports, heals it, drains it, and checks what the clients saw.
//
//	go run ./chaos --duration 10m --seed 7
//	go run ./chaos --duration 1m --faults kill-leader,pause-leader
//	go run ./chaos --duration 3m --log-store raft-wal,raft-boltdb,raft-wal
//	go run ./chaos --duration 3m --recover-from backup
//	go run ./chaos --duration 3m --secure
//	go run ./chaos check DIR/history.jsonl
//
// It uses only what users see of the server: the binary, its HTTP and beanstalkd ports,
// its logs. The seed determines the schedule (which faults, in which order, on which
// nodes, for how long) and the clients' choices. It does not determine how processes
// interleave, so it may take several runs with a seed to see a violation again.
//
// The packages: workload makes and records the load; fault injects faults by network,
// disk and stranger; history checks. This package connects them. Start with run.go.
package main
