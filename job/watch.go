package job

// Watch follows reservations until they end: the job is finished, deleted, released or
// buried through any node, or the reservation expires. It reports an end once its own node
// has applied it. Its methods may be called from any goroutine and do not wait for others;
// Close ends it.
type Watch interface {
	// Add follows more reservations. Those that have ended already are reported too.
	Add(reservations []Token) error
	// Wake receives after reservations have ended, once for any number of them.
	Wake() <-chan struct{}
	// Take returns the reservations that have ended since the last call, each once.
	Take() []Token
	Close()
}
