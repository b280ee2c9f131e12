package job

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"tarry/job/jobpb"
)

// A Setting is a row of the table of topic settings, which serves the HTTP API, the command
// line, the Go client's test, the docs and the checks. What it does to jobs is in fsm.
type Setting struct {
	Name    string // of the HTTP API; the flag has - for _
	Type    SettingType
	Help    string // what it does
	Default string // the default
	Why     string // the reason for the default

	// Choices are the names of the values of an enum, by their number.
	Choices []string
	// Of is the setting that this one belongs to: it is shown and removed with that one.
	Of string

	// bounds returns the range of numbers, in the unit of the field: milliseconds, jobs,
	// thousandths. nil: that of the field's type.
	bounds func(l *Limits) (least, most int64)
	low    string // the error of a number that is too low; empty: the bounds
	field  protoreflect.FieldDescriptor
}

// SettingType is the form of a setting.
type SettingType int

const (
	SettingDuration SettingType = iota // seconds; the field has milliseconds
	SettingCount                       // a whole number
	SettingRate                        // a number with three decimals; the field has thousandths
	SettingChoice                      // one of several names; the field is an enum
	SettingSwitch                      // true or false
	SettingText                        // a line of text, of the length and characters of a name
	SettingNames                       // a list of header names
	SettingBackoff                     // a jobpb.Backoff
	SettingPush                        // a jobpb.PushTarget
)

// Settings are all settings, in the order in which they are shown. A new one is a field of
// jobpb.TopicSettings and a row here, a member of client.Settings, and what fsm does
// with it.
var Settings = []*Setting{
	{
		Name: "ttr", Type: SettingDuration, Help: "how long a reservation lasts, for jobs added without a `ttr`", Default: "60 s",
		Why:    "long enough for a mail or an HTTP call, short enough that the job of a dead worker comes back within a minute",
		bounds: func(l *Limits) (int64, int64) { return 1, l.MaxTTR.Milliseconds() },
	},
	{
		Name: "max_attempts", Type: SettingCount, Help: "attempts (0 is no limit) for jobs added without `max_attempts`", Default: "16",
		Why: "with the default backoff the 15 waits take about four hours: longer than most outages. Then somebody should look",
	},
	{
		Name: "backoff", Type: SettingBackoff, Help: "delays after a failure, for jobs without a [backoff](retries.md) of their own", Default: "after a release 1 s, doubling up to an hour, shortened by up to 20% at random; after an expired reservation none",
		Why: "what fails is usually a service that is down for seconds or hours. The job of a dead worker has waited for its time to run already",
	},
	{
		Name: "max_pending", Type: SettingCount, Help: "maximum number of delayed and ready jobs; further adds are refused", Default: "no limit",
		Why: "how large a backlog may become is for its owner to say; the disk has a mark of its own",
	},
	{
		Name: "max_reserved", Type: SettingCount, Help: "maximum number of reserved jobs", Default: "no limit",
		Why:    "each consumer reserves only what it can process; what they share, such as a database, the queue does not know",
		bounds: func(*Limits) (int64, int64) { return 1, math.MaxInt64 }, low: "must be at least 1 (pause the topic to hand out nothing)",
	},
	{
		Name: "rate", Type: SettingRate, Help: "maximum average number of jobs handed out per second, with up to three decimals", Default: "no limit",
		Why:    "as for `max_reserved`: what the work may cost is not known to the queue",
		bounds: func(l *Limits) (int64, int64) { return 1, int64(l.MaxRateMilli) },
	},
	{
		Name: "burst", Type: SettingCount, Help: "maximum number of jobs handed out at once under a `rate`", Default: "the jobs of one second",
		Why:    "a rate of 10 a second then allows 10 at once, as one reads it",
		bounds: func(l *Limits) (int64, int64) { return 1, int64(l.MaxBurst) },
	},
	{
		Name: "expire", Type: SettingDuration, Help: "how long after its due time a job may be handed out", Default: "no limit",
		Why:    "a late job is usually better than none",
		bounds: func(l *Limits) (int64, int64) { return 0, l.MaxDelay.Milliseconds() },
	},
	{
		Name: "expiry", Type: SettingChoice, Choices: []string{"drop", "dead"}, Of: "expire", Help: "what happens to an expired job", Default: "`drop`",
		Why: "whoever sets `expire` has said that late jobs are useless",
	},
	{
		Name: "spread", Type: SettingDuration, Help: "window over which jobs that are due at the same time are spread", Default: "none",
		Why:    "a job should come when it was asked for",
		bounds: func(l *Limits) (int64, int64) { return 0, l.MaxSpread.Milliseconds() },
	},
	{
		Name: "retain", Type: SettingDuration, Help: "how long finished and deleted jobs are retained, with a [history](history.md)", Default: "not retained",
		Why:    "retained jobs take disk space",
		bounds: func(l *Limits) (int64, int64) { return 0, l.MaxRetention.Milliseconds() },
	},
	{
		Name: "retain_max", Type: SettingCount, Help: "maximum number of retained jobs; beyond it those are removed whose retention ends first", Default: "1,000,000",
		Why:    "a bound on that space, which is also the largest value",
		bounds: func(l *Limits) (int64, int64) { return 1, int64(l.MaxRetained) }, low: "must be at least 1 (take `retain` away to keep none)",
	},
	{
		Name: "late_finish", Type: SettingChoice, Choices: []string{"accept", "refuse"}, Default: "`accept`",
		Why:  "the work is done; refusing it would only do it again",
		Help: "what happens to a finish after the reservation has expired, if nobody else has had the job since",
	},
	{
		Name: "require_token", Type: SettingSwitch, Help: "a reservation can only be ended or extended with its token", Default: "`false`",
		Why: "beanstalkd clients have no tokens, and a person with curl may finish a job by its id",
	},
	{
		Name: "index_headers", Type: SettingNames, Help: "up to 4 headers by which the jobs are [found](headers.md)", Default: "none",
		Why: "each index costs a write more per add and per end of a job",
	},
	{
		Name: "push", Type: SettingPush, Help: "the HTTP target that the leader posts jobs to: see [push.md](push.md)", Default: "none",
		Why: "consumers that reserve need no address that the nodes can reach",
	},
	{
		Name: "description", Type: SettingText, Help: "purpose and owner of the topic, up to 200 bytes", Default: "none",
		Why: "nothing depends on it",
	},
}

func init() {
	fields := (*jobpb.TopicSettings)(nil).ProtoReflect().Descriptor().Fields()
	units := map[SettingType]string{SettingDuration: "_ms", SettingRate: "_milli"}
	for _, s := range Settings {
		s.field = fields.ByName(protoreflect.Name(s.Name + units[s.Type]))
		if s.field == nil {
			panic("job/settings.go: TopicSettings has no field for the setting " + s.Name)
		}
	}
}

// SettingNamed returns the row of a setting; nil: there is none.
func SettingNamed(name string) *Setting {
	for _, s := range Settings {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// In reports whether the settings of a topic have this one; nil has none.
func (s *Setting) In(of *jobpb.TopicSettings) bool { return of.ProtoReflect().Has(s.field) }

// Shown reports whether clients see it: it is set, or belongs to one that is set.
func (s *Setting) Shown(of *jobpb.TopicSettings) bool {
	return s.In(of) || s.Of != "" && SettingNamed(s.Of).In(of)
}

// Clear removes the setting.
func (s *Setting) Clear(of *jobpb.TopicSettings) { of.ProtoReflect().Clear(s.field) }

// Number returns a number, in the unit of its field, or a choice.
func (s *Setting) Number(of *jobpb.TopicSettings) int64 {
	v := of.ProtoReflect().Get(s.field)
	switch s.field.Kind() {
	case protoreflect.EnumKind:
		return int64(v.Enum())
	case protoreflect.Int64Kind:
		return v.Int()
	}
	return int64(min(v.Uint(), math.MaxInt64))
}

// SetNumber sets what Number returns. It checks it against the newest limits.
func (s *Setting) SetNumber(of *jobpb.TopicSettings, n int64) error {
	if err := s.checkNumber(Newest(), n); err != nil {
		return err
	}
	var v protoreflect.Value
	switch s.field.Kind() {
	case protoreflect.EnumKind:
		v = protoreflect.ValueOfEnum(protoreflect.EnumNumber(n))
	case protoreflect.Int64Kind:
		v = protoreflect.ValueOfInt64(n)
	case protoreflect.Uint32Kind:
		v = protoreflect.ValueOfUint32(uint32(n))
	default:
		v = protoreflect.ValueOfUint64(uint64(n))
	}
	of.ProtoReflect().Set(s.field, v)
	return nil
}

// SetSwitch sets a setting that is true or false.
func (s *Setting) SetSwitch(of *jobpb.TopicSettings, on bool) {
	of.ProtoReflect().Set(s.field, protoreflect.ValueOfBool(on))
}

// Text returns the value of a text.
func (s *Setting) Text(of *jobpb.TopicSettings) string {
	return of.ProtoReflect().Get(s.field).String()
}

// SetText sets a text.
func (s *Setting) SetText(of *jobpb.TopicSettings, text string) {
	of.ProtoReflect().Set(s.field, protoreflect.ValueOfString(text))
}

// Names is the value of a setting that is a list of names.
func (s *Setting) Names(of *jobpb.TopicSettings) (names []string) {
	list := of.ProtoReflect().Get(s.field).List()
	for i := range list.Len() {
		names = append(names, list.Get(i).String())
	}
	return names
}

// SetNames is the reverse of Names.
func (s *Setting) SetNames(of *jobpb.TopicSettings, names []string) {
	s.Clear(of)
	for _, name := range names {
		of.ProtoReflect().Mutable(s.field).List().Append(protoreflect.ValueOfString(name))
	}
}

// Choice returns the number of a name.
func (s *Setting) Choice(name string) (int64, error) {
	if i := slices.Index(s.Choices, name); i >= 0 {
		return int64(i), nil
	}
	return 0, Invalid(s.Name, "is %.40q; it takes %s", name, strings.Join(s.Choices, " and "))
}

// Millis converts a duration of a client, in seconds, to milliseconds.
func (s *Setting) Millis(seconds float64) (int64, error) {
	least, most := s.limits(Newest())
	ms := MillisOf(seconds)
	return ms, WithinSeconds(s.Name, ms, least, time.Duration(most)*time.Millisecond)
}

// limits returns the range of the setting's number.
func (s *Setting) limits(l *Limits) (least, most int64) {
	switch {
	case s.Type == SettingChoice:
		return 0, int64(len(s.Choices) - 1)
	case s.bounds != nil:
		return s.bounds(l)
	case s.field.Kind() == protoreflect.Uint32Kind:
		return 0, math.MaxUint32
	}
	return 0, math.MaxInt64
}

// Range returns what the setting may be, and the unit of that, in the terms of clients; no
// unit: it is not a number.
func (s *Setting) Range() (least, most float64, unit string) {
	low, high := s.limits(Newest())
	switch s.Type {
	case SettingDuration:
		return float64(low) / 1000, float64(high) / 1000, "seconds"
	case SettingRate:
		return float64(low) / 1000, float64(high) / 1000, "jobs a second"
	case SettingCount:
		return float64(low), float64(high), "a number of jobs or attempts"
	}
	return 0, 0, ""
}

func (s *Setting) checkNumber(l *Limits, n int64) error {
	least, most := s.limits(l)
	if n >= least && n <= most {
		return nil
	}
	switch s.Type {
	case SettingDuration:
		return Invalid(s.Name, "is %s s; it must be between %s and %s s", thousandths(n), thousandths(least), thousandths(most))
	case SettingRate:
		return Invalid(s.Name, "is %s jobs a second; it must be between %s and %s", thousandths(n), thousandths(least), thousandths(most))
	}
	if n < least && s.low != "" {
		return Invalid(s.Name, "is %d; it %s", n, s.low)
	}
	return Invalid(s.Name, "is %d; it must be between %d and %d", n, least, most)
}

func thousandths(n int64) string { return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) }

// CheckSettings checks the settings of a topic; nil is none. The fields in errors
// are those of the HTTP API.
func (l *Limits) CheckSettings(of *jobpb.TopicSettings) error {
	if of == nil {
		return nil
	}
	for _, s := range Settings {
		var err error
		switch s.Type {
		case SettingSwitch:
		case SettingText:
			if s.In(of) {
				err = l.checkName(s.Name, s.Text(of))
			}
		case SettingNames:
			err = l.checkIndexHeaders(s.Name, of.IndexHeaders)
		case SettingBackoff:
			err = l.CheckBackoff(of.Backoff)
		case SettingPush:
			err = l.checkPush(of.Push)
		default:
			if s.In(of) {
				err = s.checkNumber(l, s.Number(of))
			}
		}
		if err != nil {
			return err
		}
	}
	if of.Burst > 0 && of.RateMilli == 0 {
		return Invalid("burst", "is %d, but there is no rate for it; give both", of.Burst)
	}
	return nil
}

// checkIndexHeaders checks the headers by which the jobs of a topic are found.
func (l *Limits) checkIndexHeaders(field string, names []string) error {
	if len(names) > l.MaxIndexHeaders {
		return Invalid(field, "has %d names; the limit is %d", len(names), l.MaxIndexHeaders)
	}
	for i, name := range names {
		if err := l.checkName("a name in "+field, name); err != nil {
			return Errorf(CodeInvalid, "%w", err).In(field)
		}
		if slices.Contains(names[:i], name) {
			return Invalid(field, "has %.40q twice", name)
		}
	}
	return nil
}
