// Package auth decides what a client may do. A Secret is the text of a token, which only
// its holder has; the state of the cluster has the SHA-256 of it (secret.go). A token has
// rules, each of which allows verbs on topics, and nothing else is allowed (grants.go).
// State is all tokens and the mode at one revision (state.go), and Principal is who causes
// an operation (principal.go).
//
// The package is pure: it reads no clock and makes no random numbers. The state machine
// decides by it when it applies an operation, in the order of the log, so that every node
// decides alike and nothing that follows a revocation in the log is allowed by the token.
// What the API decides by it before that is only an early reply.
package auth
