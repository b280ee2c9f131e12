package job

import (
	"time"

	"tarry/job/jobpb"
)

// Limits are those by which the state machine checks operations. They belong to the cluster
// version and not to the release: two releases that checked the same entry by different
// limits would reach different states. So the limits of a version never change; new ones
// go into the next version (LimitsAt). limits.go documents each.
type Limits struct {
	MaxNameBytes, MaxReasonBytes, MaxConsumerBytes      int
	HardMaxBodyBytes, MaxAtomicAddBytes, MaxBatch       int
	MaxHeaders, MaxHeaderBytes, MaxBackoffDelays        int
	MaxBackoffFactor, MaxBurst                          uint32
	MaxRateMilli                                        uint64
	MaxReserve, MaxKick, MaxMigrate                     uint32
	MaxReserveTopics                                    int
	MaxDelay, MaxTTR, MaxPause, MaxSpread, MaxRetention time.Duration
	MaxTopics, MaxSchedules, PastRuns                   int
	MaxRetained                                         uint64
	MaxScheduleNameBytes, MaxRunKeyBytes, MaxSpecBytes  int
	MaxScheduleBodyBytes                                int
	MaxScheduleRuns                                     uint32
	MaxJitter, MaxMissedAfter                           time.Duration
	MaxPushTargets, MaxPushURLBytes                     int
	MinPushSecretBytes, MaxPushSecretBytes              int
	MinPushTimeout, MaxPushTimeout                      time.Duration
	MaxPushConcurrency                                  uint32
	MaxIndexHeaders                                     int
	MaxTokens, MaxTokenRules, MaxTokenRuleBytes         int
	MaxTokenPatterns, MaxTokenPrefixLengths             int
	MaxTokenIDBytes, MaxDescriptionBytes                int
	MaxTokenBytes                                       uint64
	MaxTokenOverlap                                     time.Duration
	MaxRemovedNodes, MaxInvitations                     int
	MaxInvitationTime                                   time.Duration
	MaxNamespaces, MaxNamespaceNameBytes                int

	// ReleaseBackoff is the backoff after a release, for a job that has none in a topic that has
	// none; empty: it does not wait. An expired reservation has taken time already.
	ReleaseBackoff *jobpb.Backoff
}

// limitsOf has the limits of every version that this release runs.
var limitsOf = map[uint32]*Limits{FirstVersion: &firstLimits, 2: &secondLimits}

var firstLimits = Limits{
	MaxNameBytes: MaxNameBytes, MaxReasonBytes: MaxReasonBytes, MaxConsumerBytes: MaxConsumerBytes,
	HardMaxBodyBytes: HardMaxBodyBytes, MaxAtomicAddBytes: MaxAtomicAddBytes, MaxBatch: MaxBatch,
	MaxHeaders: MaxHeaders, MaxHeaderBytes: MaxHeaderBytes, MaxBackoffDelays: MaxBackoffDelays,
	MaxBackoffFactor: MaxBackoffFactor, MaxBurst: MaxBurst, MaxRateMilli: MaxRateMilli,
	MaxReserve: MaxReserve, MaxKick: MaxKick, MaxMigrate: MaxMigrate, MaxReserveTopics: MaxReserveTopics,
	MaxDelay: MaxDelay, MaxTTR: MaxTTR, MaxPause: MaxPause, MaxSpread: MaxSpread, MaxRetention: MaxRetention,
	MaxTopics: MaxTopics, MaxSchedules: MaxSchedules, PastRuns: PastRuns, MaxRetained: MaxRetained,
	MaxScheduleNameBytes: MaxScheduleNameBytes, MaxRunKeyBytes: MaxRunKeyBytes, MaxSpecBytes: MaxSpecBytes,
	MaxScheduleBodyBytes: MaxScheduleBodyBytes, MaxScheduleRuns: MaxScheduleRuns,
	MaxJitter: MaxJitter, MaxMissedAfter: MaxMissedAfter,
	MaxPushTargets: MaxPushTargets, MaxPushURLBytes: MaxPushURLBytes,
	MinPushSecretBytes: MinPushSecretBytes, MaxPushSecretBytes: MaxPushSecretBytes,
	MinPushTimeout: MinPushTimeout, MaxPushTimeout: MaxPushTimeout, MaxPushConcurrency: MaxPushConcurrency,
	MaxIndexHeaders: MaxIndexHeaders,
	MaxTokens:       MaxTokens, MaxTokenRules: MaxTokenRules, MaxTokenRuleBytes: MaxTokenRuleBytes,
	MaxTokenPatterns: MaxTokenPatterns, MaxTokenPrefixLengths: MaxTokenPrefixLengths,
	MaxTokenIDBytes: MaxTokenIDBytes, MaxDescriptionBytes: MaxDescriptionBytes, MaxTokenOverlap: MaxTokenOverlap,
	MaxRemovedNodes: MaxRemovedNodes, MaxInvitations: MaxInvitations, MaxInvitationTime: MaxInvitationTime,
	MaxTokenBytes: MaxTokenBytes,
	MaxNamespaces: MaxNamespaces, MaxNamespaceNameBytes: MaxNamespaceNameBytes,
	ReleaseBackoff: &jobpb.Backoff{},
}

var secondLimits = func() Limits {
	l := firstLimits
	l.ReleaseBackoff = &jobpb.Backoff{BaseMs: 1000, FactorPermille: 2000, MaxMs: 3600_000, JitterPercent: 20}
	return l
}()

// LimitsAt returns the limits at a cluster version that this release runs.
func LimitsAt(version uint32) *Limits { return limitsOf[version] }

// Newest returns the newest limits of this release. APIs check by them; the state machine
// refuses what the cluster version does not allow yet.
func Newest() *Limits { return limitsOf[MaxVersion] }

// The functions below check by the newest limits.

func CheckTopic(field, topic string) error       { return Newest().CheckTopic(field, topic) }
func CheckID(field, id string) error             { return Newest().CheckID(field, id) }
func CheckRefID(field, id string) error          { return Newest().CheckRefID(field, id) }
func CheckConsumer(field, name string) error     { return Newest().CheckConsumer(field, name) }
func CheckBackoff(b *jobpb.Backoff) error        { return Newest().CheckBackoff(b) }
func CheckFilter(f *jobpb.Filter) error          { return Newest().CheckFilter(f) }
func CheckSettings(s *jobpb.TopicSettings) error { return Newest().CheckSettings(s) }
func CheckScheduleName(field, name string) error { return Newest().CheckScheduleName(field, name) }
func CheckTimes(s *jobpb.Schedule) error         { return Newest().CheckTimes(s) }
func CheckRunKey(field, key string) error        { return Newest().CheckRunKey(field, key) }
func CheckTokenID(field, id string) error        { return Newest().CheckTokenID(field, id) }
func CheckToken(t *jobpb.Token) error            { return Newest().CheckToken(t) }
func CheckAuthSettings(s *jobpb.AuthSettings) error {
	return Newest().CheckAuthSettings(s)
}
