// Package push posts due jobs to HTTP targets. A topic whose settings name a
// target is consumed by the leader: it reserves the topic's jobs like any consumer
// and posts each to the target, signed. A 2xx answer finishes the job; anything
// else releases it, with the reason, under its backoff, until its attempts are
// used up. Delivery is at least once: when leadership moves, or a finish is lost,
// a job is posted again.
//
// Nothing can be reached that the operator has not listed: see Allow.
//
// Start at Pusher; post.go is one post, allow.go the list of destinations, headers.go
// the job's own headers, sign.go the signature.
package push
