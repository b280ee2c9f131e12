package job

import (
	"cmp"
	"unicode/utf8"

	"tarry/job/jobpb"
)

// Limits of reads about dead jobs by reason. They bound what a read costs, which is some
// tens of milliseconds.
const (
	MaxDeadGroups = 1000 // in one response
	// MaxDeadScan is how many groups, or topics of a group, one read examines.
	MaxDeadScan = 10_000
)

// DeadReasonBytes is how much of their reason groups dead jobs: longer texts often have the
// data of the one job at their end. It is on disk.
const DeadReasonBytes = 200

// DeadReason returns the text by which a job is grouped with others once it is dead: the
// reason or else the last error, cut at the end of a rune.
func DeadReason(reason, lastError string) string {
	text := cmp.Or(reason, lastError)
	if len(text) <= DeadReasonBytes {
		return text
	}
	n := DeadReasonBytes
	for n > DeadReasonBytes-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// CheckDeadReason checks a text that must be the whole reason of a group.
func CheckDeadReason(field, reason string) error {
	if len(reason) > DeadReasonBytes {
		return Invalid(field, "has %d bytes; dead jobs are grouped by the first %d bytes of their reason", len(reason), DeadReasonBytes)
	}
	if !utf8.ValidString(reason) {
		return Invalid(field, "is not valid UTF-8")
	}
	return nil
}

// CheckDeadReasons checks a query for the reasons that most dead jobs have.
func CheckDeadReasons(q *jobpb.DeadReasonsQuery) error {
	if q.Topic != "" {
		if err := CheckTopic("topic", q.Topic); err != nil {
			return err
		}
	}
	return Within("max", int64(q.Max), 1, MaxDeadGroups)
}

// CheckDeadTopics checks a query for the topics of the dead jobs with a reason.
func CheckDeadTopics(q *jobpb.DeadTopicsQuery) error {
	if err := CheckDeadReason("exact_reason", q.Reason); err != nil {
		return err
	}
	return Within("max", int64(q.Max), 1, MaxDeadScan)
}
