// Package router makes one queue of the groups of a cluster with several shards: it sends each
// operation and each read to the groups that it concerns, and makes one result of theirs.
//
// It is routing and nothing else: it knows no Raft and no network, keeps nothing of a job, and
// decides nothing that a state machine decides. Where an operation goes is a column of the
// table in package oplog; which shard a job is in is computed by package slot. In a cluster with
// one shard there is no router.
//
// Start with Queue in queue.go. do.go cuts batches, topic.go has what concerns all jobs of a
// topic, read.go and the files behind it merge what is read. What one queue over several groups cannot keep of
// a queue of one group is in docs/shards.md.
package router
