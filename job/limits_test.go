package job

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/job/jobpb"
)

// Two releases that run a version must have the same limits at it. After a release, a
// changed limit makes the nodes of two releases differ; add the new limit to the next
// version instead.
func TestTheLimitsOfAVersionNeverChange(t *testing.T) {
	require.Equal(t, Limits{
		MaxNameBytes: 200, MaxReasonBytes: 1000, MaxConsumerBytes: 64,
		HardMaxBodyBytes: 4 << 20, MaxAtomicAddBytes: 4 << 20, MaxBatch: 1000,
		MaxHeaders: 64, MaxHeaderBytes: 8 << 10, MaxBackoffDelays: 100, MaxBackoffFactor: 100_000,
		MaxBurst: 1_000_000, MaxRateMilli: 1_000_000_000,
		MaxReserve: 1000, MaxKick: 10_000, MaxMigrate: 10_000, MaxReserveTopics: 1000,
		MaxDelay: 1_000_000_000 * time.Second, MaxTTR: 87_600 * time.Hour, MaxPause: (1<<32 - 1) * time.Second,
		MaxSpread: 7 * 24 * time.Hour, MaxRetention: 365 * 24 * time.Hour,
		MaxTopics: 100_000, MaxSchedules: 10_000, PastRuns: 20, MaxRetained: 1_000_000,
		MaxScheduleNameBytes: 150, MaxRunKeyBytes: 40, MaxSpecBytes: 200, MaxScheduleBodyBytes: 64 << 10, MaxScheduleRuns: 1000,
		MaxJitter: 24 * time.Hour, MaxMissedAfter: 24 * time.Hour,
		MaxPushTargets: 1000, MaxPushURLBytes: 2000, MinPushSecretBytes: 16, MaxPushSecretBytes: 256,
		MinPushTimeout: 100 * time.Millisecond, MaxPushTimeout: 5 * time.Minute, MaxPushConcurrency: 100,
		MaxIndexHeaders: 4,
		MaxTokens:       10_000, MaxTokenRules: 64, MaxTokenRuleBytes: 8 << 10, MaxTokenPatterns: 256, MaxTokenPrefixLengths: 32, MaxTokenIDBytes: 32, MaxDescriptionBytes: 200,
		MaxTokenBytes:   1 << 40,
		MaxTokenOverlap: 30 * 24 * time.Hour,
		MaxRemovedNodes: 10_000, MaxInvitations: 100, MaxInvitationTime: 30 * 24 * time.Hour,
		MaxNamespaces: 1000, MaxNamespaceNameBytes: 32, ReleaseBackoff: &jobpb.Backoff{},
	}, *LimitsAt(FirstVersion))
	second := *LimitsAt(FirstVersion)
	second.ReleaseBackoff = &jobpb.Backoff{BaseMs: 1000, FactorPermille: 2000, MaxMs: 3600_000, JitterPercent: 20}
	require.Equal(t, second, *LimitsAt(2))
	// The same at every version, as those in package oplog are:
	require.Equal(t, int64(253402300799999), int64(MaxInstantMS))
}

// Names are checked by this list too.
func TestTheInvisibleCharactersNeverChange(t *testing.T) {
	require.Equal(t, "22c3d2afcadb15825d986a24247975bab9fd184f926a49b220aa5ae4590c432b", fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, invisible))))
}

func TestEveryVersionHasAllLimits(t *testing.T) {
	for version := uint32(MinVersion); version <= MaxVersion; version++ {
		l := reflect.ValueOf(*LimitsAt(version))
		for i := range l.NumField() {
			require.NotZero(t, l.Field(i).Interface(), "%s at version %d", l.Type().Field(i).Name, version)
		}
	}
}
