package job

import (
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"tarry/job/jobpb"
)

// CheckTopic checks a topic's name: 1 to MaxNameBytes bytes of UTF-8 without control
// characters and without invisible ones. Errors name field.
func (l *Limits) CheckTopic(field, topic string) error { return l.checkName(field, topic) }

// CheckID checks a producer's id: like a topic's name, and without the server's prefix.
func (l *Limits) CheckID(field, id string) error {
	if IsServerID(id) {
		return Invalid(field, "%.40q starts with %q, which is reserved for ids made by the server", id, serverPrefix)
	}
	return l.checkName(field, id)
}

// CheckRefID checks an id that is used to find a job: a producer's or a server's.
func (l *Limits) CheckRefID(field, id string) error { return l.checkName(field, id) }

func (l *Limits) checkName(field, s string) error {
	switch {
	case s == "":
		return Invalid(field, "is missing or empty; it takes 1 to %d bytes", l.MaxNameBytes)
	case len(s) > l.MaxNameBytes:
		return Invalid(field, "has %d bytes; the limit is %d", len(s), l.MaxNameBytes)
	case !utf8.ValidString(s):
		return Invalid(field, "is not valid UTF-8")
	}
	for _, r := range s {
		if r < 0x20 || (r >= 0x7f && r < 0xa0) {
			return Invalid(field, "has the control character U+%04X; control characters are not allowed", r)
		}
		if r > 0x7f && isInvisible(r) {
			return Invalid(field, "has the character U+%04X, which is invisible or sets the direction of the text; such characters are not allowed", r)
		}
	}
	return nil
}

// MillisOf converts seconds of a client to milliseconds. What is not a whole number of them is
// rounded up, so that nothing is shorter than asked for, except for less than a microsecond, which
// may come from the conversion. A positive value stays positive, because 0 means "never" for some
// fields. A value that is negative,
// not a number or too large stays outside every valid range.
func MillisOf(seconds float64) int64 {
	switch ms := seconds * 1000; {
	case !(ms >= math.MinInt64): // NaN too
		return math.MinInt64
	case ms >= math.MaxInt64:
		return math.MaxInt64
	case ms > 0:
		return max(int64(math.Ceil(ms-0.001)), 1)
	case ms < 0:
		return min(int64(ms-0.5), -1)
	}
	return 0
}

// Millis is MillisOf within [0, max].
func Millis(field string, seconds float64, max time.Duration) (int64, error) {
	ms := MillisOf(seconds)
	return ms, WithinSeconds(field, ms, 0, max)
}

// TTRMillis is Millis for a time to run, which must not be 0.
func TTRMillis(field string, seconds float64) (int64, error) {
	ms := MillisOf(seconds)
	return ms, WithinSeconds(field, ms, 1, MaxTTR)
}

// Within checks that a whole number is in [least, most].
func Within(field string, v, least, most int64) error {
	if v < least || v > most {
		return Invalid(field, "is %d; it must be between %d and %d", v, least, most)
	}
	return nil
}

// WithinSeconds checks that milliseconds are in [least, most].
func WithinSeconds(field string, ms, least int64, most time.Duration) error {
	switch {
	case ms == math.MaxInt64 || ms == math.MinInt64: // MillisOf has cut it: another number was sent
		return Invalid(field, "is out of range; it must be between %s and %s s", inSeconds(least), inSeconds(most.Milliseconds()))
	case ms < least || ms > most.Milliseconds():
		return Invalid(field, "is %s s; it must be between %s and %s s", inSeconds(ms), inSeconds(least), inSeconds(most.Milliseconds()))
	}
	return nil
}

// ahead checks that an instant is at most that far ahead of a clock.
func ahead(field string, ms, clockMS int64, most time.Duration) error {
	if ms > clockMS+most.Milliseconds() {
		return Invalid(field, "is %s; it must be at most %s s ahead", FormatInstant(ms, 0), plainSeconds(most))
	}
	return nil
}

func inSeconds(ms int64) string { return strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64) }

func plainSeconds(d time.Duration) string { return strconv.FormatInt(int64(d.Seconds()), 10) }

// Instant formats Unix milliseconds for people.
func Instant(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// CheckReason checks the reason of a release or bury.
func (l *Limits) CheckReason(reason string) error { return l.CheckReasonIn("reason", reason) }

func (l *Limits) CheckReasonIn(field, reason string) error {
	if len(reason) > l.MaxReasonBytes {
		return Invalid(field, "has %d bytes; the limit is %d", len(reason), l.MaxReasonBytes)
	}
	if !utf8.ValidString(reason) {
		return Invalid(field, "is not valid UTF-8")
	}
	return nil
}

// CheckConsumer checks the name of a consumer; it may be empty.
func (l *Limits) CheckConsumer(field, name string) error {
	if len(name) > l.MaxConsumerBytes {
		return Invalid(field, "has %d bytes; the limit is %d", len(name), l.MaxConsumerBytes)
	}
	if name == "" {
		return nil
	}
	return l.checkName(field, name)
}

// CheckDue checks that a due instant is not too far ahead of a clock. oplog.CheckOp checks the
// rest.
func (l *Limits) CheckDue(field string, dueMS, clockMS int64) error {
	return ahead(field, dueMS, clockMS, l.MaxDelay)
}

// CheckPauseEnd is CheckDue for the instant at which a pause ends.
func (l *Limits) CheckPauseEnd(untilMS, clockMS int64) error {
	return ahead("until", untilMS, clockMS, l.MaxPause)
}

// CheckTTR checks the TTR of a job. That of a reservation may be 0, which means the job's.
func (l *Limits) CheckTTR(ms int64) error { return WithinSeconds("ttr", ms, 1, l.MaxTTR) }

func (l *Limits) CheckBody(body []byte, kind jobpb.BodyKind) error {
	switch {
	case len(body) > l.HardMaxBodyBytes:
		return Invalid("body", "has %d bytes; the limit is %d", len(body), l.HardMaxBodyBytes)
	case kind != jobpb.BodyKind_BODY_BYTES && kind != jobpb.BodyKind_BODY_JSON:
		return Invalid("body_kind", "is %d; this release knows only 0 and 1", kind)
	}
	return nil
}
