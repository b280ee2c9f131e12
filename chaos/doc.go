// Command chaos starts a real cluster, puts it under recorded load, breaks it in
// every way this machine can, heals it, drains it, and judges what the clients
// saw.
//
//	go run ./chaos --duration 10m --seed 7
//	go run ./chaos --duration 1m --faults kill-leader,pause-leader
//	go run ./chaos check DIR/history.jsonl
//
// It knows the server as its users do: the binary, its HTTP and beanstalkd ports,
// its logs. The seed repeats the schedule: which faults, in which order, on whom,
// for how long, and the clients' choices. It cannot repeat how processes
// interleave, so a violation may need several runs of its seed to show again.
//
// The rooms: workload makes and records the load, fault breaks things with network,
// disk and stranger, history judges. Here is what ties them together. Start with run.go.
package main
