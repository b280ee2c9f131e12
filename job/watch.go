package job

// Watch follows reservations until they end: finished, deleted, released, buried,
// overrun, through whatever node. It hears of an end when the node it is on has
// applied it. Its methods may be called from any goroutine and do not wait for
// others; Close ends it.
type Watch interface {
	// Add follows more reservations. Those that are over already are told too.
	Add(reservations []Token) error
	// Wake receives after reservations have ended, once for any number of them.
	Wake() <-chan struct{}
	// Take gives the reservations that have ended since the last call, each once.
	Take() []Token
	Close()
}
