// Package fsm is the replicated state of one shard: jobs, topics and their order.
package fsm
