package oplog

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"tarry/job"
	"tarry/job/jobpb"
)

// rule is one way in which an operation can be invalid.
type rule struct {
	breaks func(*jobpb.Op)
	field  string // in the error
	says   string // a part of its message
}

// anAdd returns the add in an operation.
type anAdd func(*jobpb.Op) *jobpb.Add

func long(n int) string { return strings.Repeat("x", n) }

const (
	pastDelay = int64(job.MaxDelay/1e6) + 1
	pastTTR   = int64(job.MaxTTR/1e6) + 1
)

// addRules returns the rules of every add; field returns the name of an add's field in
// errors.
func addRules(of anAdd, field func(string) string) []rule {
	set := func(f func(*jobpb.Add)) func(*jobpb.Op) { return func(op *jobpb.Op) { f(of(op)) } }
	rules := []rule{
		{set(func(a *jobpb.Add) { a.Topic = "" }), "topic", "missing or empty"},
		{set(func(a *jobpb.Add) { a.Topic = long(job.MaxNameBytes + 1) }), "topic", "has 201 bytes; the limit is 200"},
		{set(func(a *jobpb.Add) { a.Topic = "a\xff" }), "topic", "not valid UTF-8"},
		{set(func(a *jobpb.Add) { a.Topic = "a\n" }), "topic", "control character U+000A"},
		{set(func(a *jobpb.Add) { a.Topic = "a\u202e" }), "topic", "U+202E, which is invisible"},
		{set(func(a *jobpb.Add) { a.TtrMs = 0 }), "ttr", "is 0 s; it must be between 0.001 and 315360000 s"},
		{set(func(a *jobpb.Add) { a.TtrMs = pastTTR }), "ttr", "is 315360000.001 s"},
		{set(func(a *jobpb.Add) { a.Body = make([]byte, job.HardMaxBodyBytes+1) }), "body", "bytes; the limit"},
		{set(func(a *jobpb.Add) { a.BodyKind = 2 }), "body_kind", "is 2"},
	}
	rules = append(rules, optionsRules(func(op *jobpb.Op) *jobpb.JobOptions {
		a := of(op)
		if a.Options == nil {
			a.Options = &jobpb.JobOptions{}
		}
		return a.Options
	})...)
	return prefixed(rules, field)
}

func prefixed(rules []rule, field func(string) string) []rule {
	for i := range rules {
		rules[i].field = field(rules[i].field)
	}
	return rules
}

// whenRules returns the rules of an add that is not of a schedule: on its delay, its due
// instant and its id.
func whenRules(of anAdd, field func(string) string) []rule {
	set := func(f func(*jobpb.Add)) func(*jobpb.Op) { return func(op *jobpb.Op) { f(of(op)) } }
	return prefixed([]rule{
		{set(func(a *jobpb.Add) { a.Id = "$0-1" }), "id", "reserved for ids made by the server"},
		{set(func(a *jobpb.Add) { a.Id = long(201) }), "id", "has 201 bytes"},
		{set(func(a *jobpb.Add) { a.DelayMs = -1 }), "delay", "is -0.001 s; it must be between 0 and 1000000000 s"},
		{set(func(a *jobpb.Add) { a.DelayMs = pastDelay }), "delay", "is 1000000000.001 s"},
		{set(func(a *jobpb.Add) { a.DueMs = -1 }), "due_at", "before 1970"},
		{set(func(a *jobpb.Add) { a.IfExists = 5 }), "if_exists", "is 5"},
	}, field)
}

func backoffRules(of func(*jobpb.Op) **jobpb.Backoff) []rule {
	set := func(b *jobpb.Backoff) func(*jobpb.Op) { return func(op *jobpb.Op) { *of(op) = b } }
	growing := func(f func(*jobpb.Backoff)) func(*jobpb.Op) {
		b := &jobpb.Backoff{BaseMs: 1000, FactorPermille: 2000, MaxMs: 9000}
		f(b)
		return set(b)
	}
	return []rule{
		{set(&jobpb.Backoff{DelaysMs: make([]int64, job.MaxBackoffDelays+1)}), "backoff", "has 101 delays"},
		{set(&jobpb.Backoff{DelaysMs: []int64{1, -1}}), "backoff.delays", "is -0.001 s"},
		{set(&jobpb.Backoff{DelaysMs: []int64{pastDelay}}), "backoff.delays", "is 1000000000.001 s"},
		{set(&jobpb.Backoff{DelaysMs: []int64{1}, BaseMs: 1}), "backoff", "both delays and base"},
		{set(&jobpb.Backoff{JitterPercent: 1}), "backoff", "neither delays nor base"},
		{growing(func(b *jobpb.Backoff) { b.JitterPercent = 101 }), "backoff.jitter", "is 1.01; it must be between 0 and 1"},
		{growing(func(b *jobpb.Backoff) { b.FactorPermille = 999 }), "backoff.factor", "is 0.999; it must be between 1 and 100"},
		{growing(func(b *jobpb.Backoff) { b.FactorPermille = job.MaxBackoffFactor + 1 }), "backoff.factor", "is 100.001"},
		{growing(func(b *jobpb.Backoff) { b.MaxMs = 999 }), "backoff.max", "less than its base"},
		{growing(func(b *jobpb.Backoff) { b.MaxMs = pastDelay }), "backoff.max", "is 1000000000.001 s"},
		{growing(func(b *jobpb.Backoff) { b.BaseMs, b.MaxMs = -1, 0 }), "backoff.base", "is -0.001 s"},
	}
}

func headerRules(of func(*jobpb.Op) *[]*jobpb.Header) []rule {
	set := func(list ...*jobpb.Header) func(*jobpb.Op) { return func(op *jobpb.Op) { *of(op) = list } }
	return []rule{
		{func(op *jobpb.Op) {
			for range job.MaxHeaders + 1 {
				*of(op) = append(*of(op), &jobpb.Header{Name: "a"})
			}
		}, "headers", "has 65 names; the limit is 64"},
		{set(&jobpb.Header{}), "headers", "a name in headers is missing"},
		{set(&jobpb.Header{Name: "b"}, &jobpb.Header{Name: "a"}), "headers", "out of order"},
		{set(&jobpb.Header{Name: "a"}, &jobpb.Header{Name: "a"}), "headers", "twice"},
		{set(&jobpb.Header{Name: "a", Value: "\xff"}), "headers", "not valid UTF-8"},
		{set(&jobpb.Header{Name: "a", Value: long(job.MaxHeaderBytes)}), "headers", "more than 8192 bytes"},
	}
}

func optionsRules(of func(*jobpb.Op) *jobpb.JobOptions) []rule {
	return append(
		backoffRules(func(op *jobpb.Op) **jobpb.Backoff { return &of(op).Backoff }),
		headerRules(func(op *jobpb.Op) *[]*jobpb.Header { return &of(op).Headers })...)
}

// refRules returns the rules of a reference to a job.
func refRules(clear func(*jobpb.Op)) []rule {
	return []rule{{clear, "id", "is missing; a job is named by its id, its token or both"}}
}

func sweepRules(of func(*jobpb.Op) *jobpb.Sweep) []rule {
	set := func(f func(*jobpb.Sweep)) func(*jobpb.Op) { return func(op *jobpb.Op) { f(of(op)) } }
	filter := func(f *jobpb.Filter) func(*jobpb.Op) { return set(func(s *jobpb.Sweep) { s.Filter = f }) }
	rules := []rule{
		{set(func(s *jobpb.Sweep) { s.Scan = 0 }), "scan", "between 1 and 10000"},
		{set(func(s *jobpb.Sweep) { s.Scan = job.MaxKick + 1 }), "scan", "is 10001"},
		{set(func(s *jobpb.Sweep) { s.From = &jobpb.Progress{StartMs: -1} }), "from", "not a place"},
		{set(func(s *jobpb.Sweep) { s.From = &jobpb.Progress{After: &jobpb.Place{Instant: -1}} }), "from", "not a place"},
		{set(func(s *jobpb.Sweep) { s.From = &jobpb.Progress{Done: MaxSweep + 1} }), "from", "the limit is 1099511627776"},
		{filter(&jobpb.Filter{IdPrefix: "$"}), "filter.id_prefix", "filter.id_prefix \"$\" starts with"},
		{filter(&jobpb.Filter{Reason: long(job.MaxReasonBytes + 1)}), "filter.reason", "has 1001 bytes"},
		{filter(&jobpb.Filter{Reason: "\xff"}), "filter.reason", "not valid UTF-8"},
		{filter(&jobpb.Filter{ExactReason: proto.String("\xff")}), "filter.exact_reason", "not valid UTF-8"},
		{filter(&jobpb.Filter{DueFromMs: -1}), "filter.due_from", "before 1970"},
		{filter(&jobpb.Filter{DueFromMs: 2, DueToMs: 2}), "filter.due_to", "not after due_from"},
		{filter(&jobpb.Filter{DiedToMs: -1}), "filter.died_from", "before 1970"},
		{filter(&jobpb.Filter{DiedFromMs: 2, DiedToMs: 1}), "filter.died_to", "not after died_from"},
	}
	headers := headerRules(func(op *jobpb.Op) *[]*jobpb.Header {
		s := of(op)
		if s.Filter == nil {
			s.Filter = &jobpb.Filter{}
		}
		return &s.Filter.Headers
	})
	return append(rules, prefixed(headers, under("filter."))...)
}

func same(field string) string { return field }
func under(prefix string) func(string) string {
	return func(field string) string { return prefix + field }
}

// checked is a valid operation, and every way in which it can be invalid.
type checked struct {
	good  *jobpb.Op
	rules []rule
}

func goodAdd() *jobpb.Add { return &jobpb.Add{Id: "a", Topic: "t", TtrMs: 1} }

func goodSchedule() *jobpb.Schedule {
	return &jobpb.Schedule{Spec: "@daily", Zone: "UTC", MissedAfterMs: 1, Job: &jobpb.Add{Topic: "t", TtrMs: 1}}
}

func TestCheckOpHoldsEveryRule(t *testing.T) {
	kinds := map[string]bool{}
	for _, c := range rulebook() {
		kind := c.good.ProtoReflect().WhichOneof((&jobpb.Op{}).ProtoReflect().Descriptor().Oneofs().ByName("kind"))
		kinds[string(kind.Name())] = true
		require.NoError(t, CheckOp(c.good, job.LimitsAt(job.FirstVersion)), kind.Name())
		for _, r := range c.rules {
			op := proto.Clone(c.good).(*jobpb.Op)
			r.breaks(op)
			err := CheckOp(op, job.LimitsAt(job.FirstVersion))
			require.ErrorContains(t, err, r.says, "%s: %s", kind.Name(), r.field)
			var e *job.Error
			require.ErrorAs(t, err, &e)
			require.Contains(t, []job.Code{job.CodeInvalid, job.CodeTooLarge}, e.Code)
			require.Equal(t, r.field, e.Field, "%s: %s", kind.Name(), err)
		}
	}
	fields := opDescriptor.Oneofs().ByName("kind").Fields()
	for i := range fields.Len() {
		name := string(fields.Get(i).Name())
		require.True(t, kinds[name], "rulebook has no row for the operation %s", name)
	}
}

// Two releases that run a version must have the same rules at it; see job.Limits.
func TestTheBoundsOfRulesNeverChange(t *testing.T) {
	require.Equal(t, [...]int64{1 << 40, 86_400}, [...]int64{MaxSweep, maxOffsetS})
}
