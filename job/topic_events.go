package job

import "tarry/job/jobpb"

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
