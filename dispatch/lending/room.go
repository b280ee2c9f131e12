package lending

import "iter"

// Room is the dispatcher of a node, which hands ready jobs to waiters. Its own waiters are those of
// its clients; a guest is the waiter of another node, here for the time of a lend. None of its methods
// may call the Lender.
type Room interface {
	// Match gives the free jobs of topics to waiters: to guests first.
	Match(topics []string)
	// Free returns how many ready jobs of a topic nobody has claimed, Soon how many fall due so
	// soon that waiters are wanted for them already, and Waiting how many waiters are in its queue.
	Free(topic string) int
	Soon(topic string) int
	Waiting(topic string) int

	// First returns the own waiter that is first in the queue of a topic.
	First(topic string) (waiter uint64, ok bool)
	// Reserve returns what an own waiter waits for.
	Reserve(waiter uint64) (topics []string, max int)
	// Topics has those with own waiters in their queues.
	Topics() iter.Seq[string]

	// Remove takes an own waiter out of its queues, because it is lent. Requeue puts it back.
	// Deliver and End end it, with the jobs of a Granted or with none.
	Remove(waiter uint64)
	Requeue(waiter uint64)
	Deliver(waiter uint64, jobs any)
	End(waiter uint64)
	// Release gives back the jobs of a Granted that no consumer receives.
	Release(jobs any)

	// Guests has those in the queue of a topic, with all topics that they wait for.
	Guests(topic string) iter.Seq2[Guest, []string]
	// CancelGuest ends the wait of a guest. It reports whether the guest was in its queues and is
	// gone. Otherwise the Reserve under way for it is its last, and GuestEnded follows.
	CancelGuest(g Guest, keep bool) (topics []string, gone bool)
	// AbandonGuest ends a guest whose stream broke. Jobs of a Reserve under way for it are given
	// back, and no GuestEnded follows, because its home may have lent it again by then.
	AbandonGuest(g Guest) (topics []string)

	// Send sends a message to another node. It must not block.
	Send(node string, m Message)
}

// Guest is the waiter of another node.
type Guest struct {
	Home   string
	Waiter uint64
}
