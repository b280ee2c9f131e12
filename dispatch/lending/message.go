package lending

// Kind is what a message says.
type Kind uint8

// The messages of a stream, which goes from a home to a supplier.
const (
	// Interest, of a home: ask me for waiters of Topic.
	Interest Kind = 1 + iota
	// Want, of a supplier: lend me waiters for N jobs of Topic. One is open at a time.
	Want
	// Lend, of a home: Waiter is the supplier's until it is answered.
	Lend
	// Done, of a home, closes the Want of Topic. With Short there is no waiter of it left, and
	// the interest is over. Done and Short can also come unasked.
	Done
	// Granted, of a supplier, ends a Lend with jobs. There are more jobs than waiters of the topics More.
	Granted
	// Returned, of a supplier, ends a Lend without jobs.
	Returned
	// Cancel, of a home, asks for the end of a Lend: with Keep its consumer still takes jobs that
	// are on their way. It is answered as each Lend is, and not if the answer is on its way already.
	Cancel
)

// Message is one message between two nodes. Which fields it has depends on its kind.
type Message struct {
	Kind   Kind
	Topic  string
	N      int
	Short  bool
	Waiter uint64 // its number at home
	Poll   bool   // of a Lend: return it at once if there is no job
	Keep   bool
	More   []string
	Jobs   any // of Granted, for Room.Deliver
}
