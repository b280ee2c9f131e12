package job

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"tarry/job/jobpb"
)

// CheckTopic checks a topic's name: 1 to MaxNameBytes bytes of UTF-8 without
// control characters and without invisible ones. field is how the client knows the value.
func (l *Limits) CheckTopic(field, topic string) error { return l.checkName(field, topic) }

// CheckID checks a producer's id: like a topic, and outside the server's names.
func (l *Limits) CheckID(field, id string) error {
	if IsServerID(id) {
		return Invalid(field, "%.40q starts with %q, which is kept for ids made by the server", id, serverPrefix)
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

// Millis turns seconds, as clients give them, into milliseconds within
// [0, max], rounded to the nearest millisecond. What is above 0 stays so: 0 stands
// for "never" in some places.
func Millis(field string, seconds float64, max time.Duration) (int64, error) {
	// The negated form also refuses NaN.
	if !(seconds >= 0 && seconds <= max.Seconds()) {
		return 0, Invalid(field, "is %.40s s; it must be between 0 and %s s", strconv.FormatFloat(seconds, 'f', -1, 64), plainSeconds(max))
	}
	if seconds > 0 && seconds < 0.001 {
		return 1, nil
	}
	return int64(seconds*1000 + 0.5), nil
}

// TTRMillis is Millis for a time to run, which is at least one millisecond.
func TTRMillis(field string, seconds float64) (int64, error) {
	ms, err := Millis(field, seconds, MaxTTR)
	if err == nil && ms == 0 {
		err = Invalid(field, "is %v s; it must be at least 0.001 s", seconds)
	}
	return ms, err
}

func plainSeconds(d time.Duration) string { return fmt.Sprintf("%d", int64(d.Seconds())) }

// Instant writes Unix milliseconds for people.
func Instant(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// CheckReason checks the reason of a release or bury.
func (l *Limits) CheckReason(field, reason string) error {
	if len(reason) > l.MaxReasonBytes {
		return Invalid(field, "has %d bytes; the limit is %d", len(reason), l.MaxReasonBytes)
	}
	if !utf8.ValidString(reason) {
		return Invalid(field, "is not valid UTF-8")
	}
	return nil
}

// CheckReserve checks what a Reserve may ask for. The state machine refuses any
// other, so one must not be let in to wait: it would be tried again for ever.
func (l *Limits) CheckReserve(op *jobpb.Reserve) error {
	switch {
	case len(op.Topics) == 0 || len(op.Topics) > l.MaxReserveTopics:
		return Invalid("topics", "has %d names; it takes 1 to %d", len(op.Topics), l.MaxReserveTopics)
	case op.Max < 1 || op.Max > l.MaxReserve:
		return Invalid("max", "is %d; it must be between 1 and %d", op.Max, l.MaxReserve)
	case op.TtrMs < 0 || op.TtrMs > l.MaxTTR.Milliseconds():
		return Invalid("ttr_ms", "is %d; it must be between 0 (the job's own) and %d", op.TtrMs, l.MaxTTR.Milliseconds())
	case op.MaxBytes < 0:
		return Invalid("max_bytes", "is %d; it must not be negative", op.MaxBytes)
	}
	return l.CheckConsumer("consumer", op.Consumer)
}

// CheckConsumer checks the name that a consumer gives of itself; it may be empty.
func (l *Limits) CheckConsumer(field, name string) error {
	if len(name) > l.MaxConsumerBytes {
		return Invalid(field, "has %d bytes; the limit is %d", len(name), l.MaxConsumerBytes)
	}
	if name == "" {
		return nil
	}
	return l.checkName(field, name)
}
