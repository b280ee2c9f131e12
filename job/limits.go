package job

import (
	"fmt"
	"time"
)

// Limits on requests, checked by oplog.CheckOp; errors name the limit. Those in the type Limits
// belong to the cluster version.
const (
	// MaxNameBytes bounds topics and ids; it is beanstalkd's tube-name limit.
	MaxNameBytes = 200

	// DefaultMaxBodyBytes is the default limit on one job's body.
	DefaultMaxBodyBytes = 1 << 20

	// HardMaxBodyBytes is the largest value of that limit. A body is in one Raft entry,
	// and a larger one would delay heartbeats.
	HardMaxBodyBytes = 4 << 20

	// MaxDelay is the longest delay, a little over 31 years: more than the ten years
	// promised, and short enough that every sum of instants is exact in milliseconds and
	// in RFC 3339.
	MaxDelay = 1_000_000_000 * time.Second

	// DefaultTTR and MaxTTR bound one reservation. The smallest is 1 ms.
	DefaultTTR = 60 * time.Second
	MaxTTR     = 10 * 365 * 24 * time.Hour

	// UrgentBelow: jobs with a smaller priority count as urgent.
	UrgentBelow = 1024

	// DefaultPriority is the smallest that is not urgent.
	DefaultPriority = UrgentBelow

	// DefaultMaxAttempts is how often a job is handed out before it is dead.
	DefaultMaxAttempts = 16

	// MaxReserve bounds the jobs of one reserve, MaxReserveBytes their bodies together,
	// MaxReserveTopics the topics that it names.
	MaxReserve       = 1000
	MaxReserveBytes  = 16 << 20
	MaxReserveTopics = 1000

	// MaxPause is the longest pause of a topic: the longest of beanstalkd's protocol.
	MaxPause = (1<<32 - 1) * time.Second

	// MaxSpread is the longest window over which a topic's jobs are spread.
	MaxSpread = 7 * 24 * time.Hour

	// NeverMS is the instant, in Unix milliseconds, of what has no end. It is after every
	// other.
	NeverMS = 1<<63 - 1

	// MaxWait is the longest long poll.
	MaxWait = 5 * time.Minute

	// MaxBatch bounds the items of one batch request.
	MaxBatch = 1000

	// MaxAtomicAddBytes bounds the bodies of jobs that are added all or nothing: they are
	// in one Raft entry.
	MaxAtomicAddBytes = HardMaxBodyBytes

	// MaxKick bounds the jobs that one kick of a topic moves, so that no entry blocks the
	// state machine for long.
	MaxKick = 10_000

	// MaxMigrate bounds the records that one step of a migration rewrites.
	MaxMigrate = 10_000

	// MaxList bounds the jobs of one page of a listing, MaxListBytes the size of the
	// page, MaxListScan the entries that are examined for it.
	MaxList      = 1000
	MaxListBytes = 4 << 20
	MaxListScan  = 10_000

	// MaxReasonBytes bounds the reason of a released or dead job.
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

	// MaxRateMilli bounds a topic's rate, in thousandths of a job per second, and MaxBurst
	// the jobs that it may hand out at once. A million per second is no limit in practice.
	MaxRateMilli = 1_000_000_000
	MaxBurst     = 1_000_000

	// MaxConsumerBytes bounds the name of a consumer.
	MaxConsumerBytes = 64

	// MaxRetention is the longest retention of finished and deleted jobs.
	MaxRetention = 365 * 24 * time.Hour

	// MaxRetained bounds the finished and deleted jobs that one topic retains;
	// beyond it the one whose retention ends first is removed.
	MaxRetained = 1_000_000

	// MaxHistory bounds the events in a job's history: its add and the latest others.
	// MaxHistoryText bounds the reason of each.
	MaxHistory     = 32
	MaxHistoryText = 256

	// MaxTopics bounds the topics of a shard: each costs memory on every node, even if it
	// is empty, until it is dropped.
	MaxTopics = 100_000

	// MaxSchedules bounds the schedules, the others the parts of one. A longer body would
	// be in the log with every change of a schedule.
	MaxSchedules         = 10_000
	MaxScheduleNameBytes = 150
	MaxRunKeyBytes       = 40
	MaxScheduleBodyBytes = 64 << 10
	MaxSpecBytes         = 200
	MaxScheduleListBytes = 4 << 20 // a page of them ends past it

	// MaxScheduleRuns bounds the missed runs that are started late at once, and the runs
	// that one operation starts; PastRuns the runs that are kept in the state.
	MaxScheduleRuns = 1000
	PastRuns        = 20

	// MaxJitter is the longest random delay of a run's job, MaxMissedAfter and
	// DefaultMissedAfter how late a run may start.
	MaxJitter          = 24 * time.Hour
	MaxMissedAfter     = 24 * time.Hour
	DefaultMissedAfter = 30 * time.Second

	// MaxRemovedNodes bounds the nodes that were removed and must not join again: every node
	// holds all of them in memory.
	MaxRemovedNodes = 10_000

	// MaxInvitations bounds the invitations of a cluster, those that were used and have not
	// expired among them, and MaxInvitationTime how long one is valid. By default that is
	// DefaultInvitationTime.
	MaxInvitations        = 100
	MaxInvitationTime     = 30 * 24 * time.Hour
	DefaultInvitationTime = time.Hour
	// MaxNamespaces bounds the namespaces of a cluster: each has a row of metrics on every node.
	MaxNamespaces         = 1000
	MaxNamespaceNameBytes = 32

	// MaxTokens bounds the tokens of a cluster: every node holds all of them in memory.
	// MaxTokenRules, MaxTokenRuleBytes and MaxTokenPatterns bound the rules of one, and
	// MaxTokenPrefixLengths how often a decision looks for a prefix: each length is one.
	// MaxTokenBytes bounds the limit of a token on bytes a second.
	// MaxTokenOverlap is how long the text before a rotation is accepted at most.
	MaxTokens             = 10_000
	MaxTokenRules         = 64
	MaxTokenRuleBytes     = 8 << 10
	MaxTokenPatterns      = 256
	MaxTokenPrefixLengths = 32
	MaxTokenIDBytes       = 32
	MaxDescriptionBytes   = 200
	MaxTokenOverlap       = 30 * 24 * time.Hour
	MaxTokenBytes         = 1 << 40
	MaxTokenListBytes     = 4 << 20 // a page of them ends past it
)

// LimitUse is how much of a limit of the whole cluster is in use.
type LimitUse struct {
	What       string // in the plural
	Used, Most int
}

// NearlyUsed is the share of a limit from which health warns of it.
const NearlyUsed = 0.8

// Share is 1 when nothing more is allowed.
func (u LimitUse) Share() float64 { return float64(u.Used) / float64(u.Most) }

// Reason is what health says of a limit that is nearly used up; empty: it is not.
func (u LimitUse) Reason() string {
	if u.Share() < NearlyUsed {
		return ""
	}
	return fmt.Sprintf("there are %d %s, and %d are the most: beyond that new ones are refused", u.Used, u.What, u.Most)
}
