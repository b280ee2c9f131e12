package job

import (
	"fmt"
	"strconv"
	"strings"

	"tarry/job/jobpb"
)

// A WriteInstant writes an instant with the word before it: until, since or at.
type WriteInstant func(word string, ms int64) string

// InstantAfter writes an instant in full.
func InstantAfter(word string, ms int64) string { return word + " " + FormatInstant(ms, 0) }

// ExplanationText returns an explanation in one line.
func ExplanationText(e *jobpb.Explanation, when WriteInstant) string {
	var late, rest []string
	for _, c := range e.Causes {
		text := c.Text
		if text == CauseText(e, c, InstantAfter) { // and not that of another release
			text = CauseText(e, c, when)
		}
		switch c.LateMs {
		case 0:
			rest = append(rest, text)
		case e.LateMs:
			late = append(late, text)
		default:
			late = append(late, tenths(c.LateMs)+" "+text)
		}
	}
	var parts []string
	switch {
	case len(late) > 0:
		parts = []string{tenths(e.LateMs) + " late: " + strings.Join(late, ", ")}
	case e.LateMs > 0:
		parts = []string{tenths(e.LateMs) + " late"}
	}
	return strings.Join(append(parts, rest...), "; ")
}

func tenths(ms int64) string { return fmt.Sprintf("%.1f s", float64(ms)/1000) }

// CauseText returns the text of a cause. One that is about no instant has it already.
func CauseText(e *jobpb.Explanation, c *jobpb.Cause, when WriteInstant) string {
	switch c.Kind {
	case jobpb.Cause_NOT_DUE:
		return "not due " + when("until", c.UntilMs)
	case jobpb.Cause_PAUSED:
		if c.UntilMs == 0 {
			return "the topic is paused until it is resumed"
		}
		return "the topic is paused " + when("until", c.UntilMs)
	case jobpb.Cause_RESERVED:
		by := ""
		if c.Consumer != "" {
			by = "by " + c.Consumer + " "
		}
		return "reserved " + by + when("until", c.UntilMs)
	case jobpb.Cause_MAX_RESERVED:
		reserved := "1 job of the topic is reserved"
		if c.Count > 1 {
			reserved = fmt.Sprintf("%d jobs of the topic are reserved", c.Count)
		}
		return reserved + ", as many as max_reserved allows; the first reservation expires " + when("at", c.UntilMs)
	case jobpb.Cause_DEAD:
		reason := "no reason given"
		if c.Reason != "" {
			reason = strconv.Quote(c.Reason)
		}
		return fmt.Sprintf("dead %s (%s); a kick brings it back", when("since", c.AtMs), reason)
	case jobpb.Cause_FINISHED:
		return "finished " + when("at", c.AtMs)
	case jobpb.Cause_DELETED:
		return "deleted " + when("at", c.AtMs)
	case jobpb.Cause_EXPIRES:
		early := ""
		if c.UntilMs <= e.DueMs {
			early = ", before it is due,"
		}
		return fmt.Sprintf("expires %s%s and is then %s", when("at", c.UntilMs), early, c.Then)
	case jobpb.Cause_EXPIRED:
		return fmt.Sprintf("expired %s and is about to be %s", when("at", c.AtMs), c.Then)
	}
	return c.Text
}
