// Package push posts due jobs to HTTP targets. The leader consumes each topic whose
// settings name a target: it reserves the topic's jobs like any consumer and posts each
// to the target with a signature. A 2xx response finishes the job. Any other outcome
// releases it with the reason and its backoff, until its attempts are used up. Delivery
// is at least once: when leadership moves, or a finish is lost, a job is posted again.
//
// Posts reach only destinations that the operator has listed: see Allow.
//
// Start at Pusher; post.go is one post, allow.go the list of destinations, headers.go
// the job's own headers, sign.go the signature.
package push
