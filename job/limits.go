package job

import "time"

// Limits on what a client may ask for. Each is checked at the border and named
// in the error; the state machine relies on them.
const (
	// MaxNameBytes bounds topics and ids; it is beanstalkd's tube-name limit.
	MaxNameBytes = 200

	// DefaultMaxBodyBytes is the default limit on one job's body.
	DefaultMaxBodyBytes = 1 << 20

	// HardMaxBodyBytes is the most that a setting may allow. One body is one
	// Raft entry; larger ones would hold up heartbeats behind them.
	HardMaxBodyBytes = 4 << 20

	// MaxDelay is the longest delay, a little over 31 years: longer than the
	// ten years promised, short enough that every sum of instants stays exact
	// in milliseconds and in RFC 3339.
	MaxDelay = 1_000_000_000 * time.Second

	// DefaultTTR and MaxTTR bound one reservation. The smallest is 1 ms.
	DefaultTTR = 60 * time.Second
	MaxTTR     = 10 * 365 * 24 * time.Hour

	// UrgentBelow ends the priorities of the jobs that are counted as urgent.
	UrgentBelow = 1024

	// DefaultPriority is the first that is not urgent.
	DefaultPriority = UrgentBelow

	// DefaultMaxAttempts is how often a job is handed out before it is dead.
	DefaultMaxAttempts = 16

	// MaxReserve bounds the jobs of one reserve answer, MaxReserveBytes their
	// bodies together, MaxReserveTopics the topics it may name.
	MaxReserve       = 1000
	MaxReserveBytes  = 16 << 20
	MaxReserveTopics = 1000

	// MaxPause is the longest pause of a topic: what beanstalkd's clients can say.
	MaxPause = (1<<32 - 1) * time.Second

	// MaxWait is the longest long poll.
	MaxWait = 5 * time.Minute

	// MaxBatch bounds the items of one batch request.
	MaxBatch = 1000

	// MaxComposeBytes bounds the bodies of the jobs that are added all or
	// nothing: they are one Raft entry.
	MaxComposeBytes = HardMaxBodyBytes

	// MaxKick bounds the jobs that one kick of a topic moves, so that one
	// entry never holds the state machine for long.
	MaxKick = 10_000

	// MaxReasonBytes bounds the reason kept with a released or dead job.
	MaxReasonBytes = 1000

	// MaxHeaders bounds the headers of a job, MaxHeaderBytes their names and
	// values together.
	MaxHeaders     = 64
	MaxHeaderBytes = 8 << 10

	// MaxBackoffDelays bounds the list of a backoff, MaxBackoffFactor the
	// growth from one wait to the next, in thousandths.
	MaxBackoffDelays = 100
	MaxBackoffFactor = 100_000

	// MaxTopics bounds the live topics of a shard: each costs memory on every
	// node, also when it is empty, until it is dropped.
	MaxTopics = 100_000
)
