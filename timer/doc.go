// Package timer wakes a shard when a job falls due.
//
// It knows one question ("when is the next due?") and one verb ("advance"). It
// runs on the leader only; leadership is the lock, so there is no other. It
// never polls: it sleeps until the next instant or until it is notified that an
// earlier one has come in. Start at Timer.Run.
package timer
