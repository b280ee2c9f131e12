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

	// MaxSpread is the longest window over which a topic's jobs are spread.
	MaxSpread = 7 * 24 * time.Hour

	// NeverMS is the instant of what does not end by itself, in the place of
	// Unix milliseconds. It lies behind every other.
	NeverMS = 1<<63 - 1

	// MaxWait is the longest long poll.
	MaxWait = 5 * time.Minute

	// MaxBatch bounds the items of one batch request.
	MaxBatch = 1000

	// MaxAtomicAddBytes bounds the bodies of the jobs that are added all or
	// nothing: they are one Raft entry.
	MaxAtomicAddBytes = HardMaxBodyBytes

	// MaxKick bounds the jobs that one kick of a topic moves, so that one
	// entry never holds the state machine for long.
	MaxKick = 10_000

	// MaxMigrate bounds the records that one step of a migration writes anew.
	MaxMigrate = 10_000

	// MaxList bounds the jobs of one page of a listing, MaxListBytes what it
	// says of them together, MaxListScan the entries that are looked at to find
	// them: then the page ends short.
	MaxList      = 1000
	MaxListBytes = 4 << 20
	MaxListScan  = 10_000

	// MaxReasonBytes bounds the reason kept with a released or dead job.
	MaxReasonBytes = 1000

	// MaxIndexHeaders bounds the headers by which the jobs of a topic are found: each is
	// a write more for each add and each end of a job.
	MaxIndexHeaders = 4

	// MaxHeaders bounds the headers of a job, MaxHeaderBytes their names and
	// values together.
	MaxHeaders     = 64
	MaxHeaderBytes = 8 << 10

	// MaxBackoffDelays bounds the list of a backoff, MaxBackoffFactor the
	// growth from one wait to the next, in thousandths.
	MaxBackoffDelays = 100
	MaxBackoffFactor = 100_000

	// MaxRateMilli bounds a topic's rate, in thousandths of a job a second, and
	// MaxBurst the jobs that it may hand out at once. Beyond a million a second a
	// limit means nothing.
	MaxRateMilli = 1_000_000_000
	MaxBurst     = 1_000_000

	// MaxConsumerBytes bounds the name that a consumer gives of itself.
	MaxConsumerBytes = 64

	// MaxRetention is how long a topic can retain finished and deleted jobs.
	MaxRetention = 365 * 24 * time.Hour

	// MaxRetained bounds the finished and deleted jobs that one topic retains;
	// past it the one whose retention ends first is forgotten.
	MaxRetained = 1_000_000

	// MaxHistory bounds the events in a job's history: its add and the latest
	// others. MaxHistoryText is what each keeps of a reason.
	MaxHistory     = 32
	MaxHistoryText = 256

	// MaxTopics bounds the live topics of a shard: each costs memory on every
	// node, also when it is empty, until it is dropped.
	MaxTopics = 100_000

	// MaxSchedules bounds the schedules, each of which the leader looks after;
	// the others the parts of one. A schedule of a longer body would make the log
	// grow by it with every change.
	MaxSchedules         = 10_000
	MaxScheduleNameBytes = 150
	MaxRunKeyBytes       = 40
	MaxScheduleBodyBytes = 64 << 10
	MaxSpecBytes         = 200
	MaxScheduleListBytes = 4 << 20 // a page of them ends past it

	// MaxScheduleRuns bounds the missed runs that are made good at once, and the
	// runs that one operation starts; PastRuns those that are remembered.
	MaxScheduleRuns = 1000
	PastRuns        = 20

	// MaxJitter is the most by which a run's job is put off at random,
	// MaxMissedAfter and DefaultMissedAfter how late a run may be started.
	MaxJitter          = 24 * time.Hour
	MaxMissedAfter     = 24 * time.Hour
	DefaultMissedAfter = 30 * time.Second
)
