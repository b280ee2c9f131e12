package job

import (
	"tarry/job/jobpb"
)

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

// TopicEvent is a kind of event that is counted for each topic.
type TopicEvent int

const (
	TopicAdded     TopicEvent = iota // a job was added
	TopicDelivered                   // a job was handed to a consumer
	TopicFinished                    // a job was finished
	TopicDeleted                     // a job was deleted
	TopicTimeout                     // a reservation expired
	TopicDied                        // a job died
	TopicExpired                     // a job was not reserved in time
	topicEvents
)

var topicEventNames = [topicEvents]string{"added", "delivered", "finished", "deleted", "timeouts", "died", "expired"}

// String returns the name of the event's count, as clients see it.
func (e TopicEvent) String() string { return topicEventNames[e] }

// Timeout is a reservation that expired.
type Timeout struct {
	Seq        uint64
	Generation uint32
	AtMS       int64       // when it expired
	State      jobpb.State // of the job since then
}

// TopicEvents counts events of a topic, by TopicEvent.
type TopicEvents [topicEvents]uint64

// Add adds the counts of more.
func (c *TopicEvents) Add(more *TopicEvents) {
	for e := range c {
		c[e] += more[e]
	}
}

// Since returns the counts that c has more than earlier.
func (c *TopicEvents) Since(earlier *TopicEvents) (more TopicEvents) {
	for e := range c {
		more[e] = c[e] - earlier[e]
	}
	return more
}
