package wire

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tarry/job"
	"tarry/job/jobpb"
)

// PurgeDeadRequest selects the dead jobs of all topics with one reason.
type PurgeDeadRequest struct {
	Reason Opt[string] `json:"exact_reason" required:"exact_reason"`
	Max    Opt[int64]  `json:"max" help:"How many at most." limit:"kick"`
	All    Opt[bool]   `json:"all"`
}

// Check returns how many jobs at most, and the filter.
func (q *PurgeDeadRequest) Check() (most uint64, filter *jobpb.Filter, err error) {
	if !q.Reason.Set {
		return 0, nil, job.Invalid("exact_reason", "is missing; an empty one is that of jobs without a reason")
	}
	if err := job.CheckDeadReason("exact_reason", q.Reason.V); err != nil {
		return 0, nil, err
	}
	most, err = (&Sweep{Max: q.Max, All: q.All}).Most()
	return most, &jobpb.Filter{ExactReason: &q.Reason.V}, err
}

type KickDeadRequest struct {
	PurgeDeadRequest `required:"exact_reason"`
	KickOptions
}

type MoveTopicRequest struct {
	Sweep  `max:"How many jobs at most; or give all, which is the default without a filter." max.limit:"kick"`
	To     Opt[string]               `json:"to" required:"to" help:"The topic that the jobs go to." limit:"name"`
	States List[string, StatesLimit] `json:"states" help:"The states of the jobs to move; all unless given." of:"delayed ready reserved dead"`
	Cursor Opt[string]               `json:"cursor" help:"The next of the call before, with the same states and filter."`
}

type PauseRequest struct {
	For   Opt[float64] `json:"for" help:"How long the pause lasts, in seconds." limit:"pause"`
	Until Timestamp    `json:"until" help:"When the pause ends."`
}

// PushRequest is the push target of a topic in a request.
type PushRequest struct {
	URL         Opt[string]  `json:"url"`
	Secret      Opt[string]  `json:"secret" help:"Signs the posts." limit:"secret"`
	Timeout     Opt[float64] `json:"timeout"`
	Concurrency Opt[int64]   `json:"concurrency"`
	JobURLs     Opt[bool]    `json:"job_urls"`
}

// RescheduleRequest asks for other due times of the delayed jobs of a topic that are due in a
// range of time.
type RescheduleRequest struct {
	Sweep    `required:"filter" filter:"Which jobs; it must have due_from and due_to."`
	Spread   Opt[float64] `json:"spread" help:"Seconds from due_from on, over which the jobs are spread." limit:"postpone"`
	Earlier  Opt[bool]    `json:"earlier" help:"Whether a spread may make jobs due earlier than they are."`
	Postpone Opt[float64] `json:"postpone" help:"Seconds by which the jobs become due later." limit:"postpone"`
	Cursor   Opt[string]  `json:"cursor" help:"The next of the call before, with the same filter, spread and postpone."`
}

// PatchField is a field of a request that changes settings: a missing field keeps the
// setting, null removes it.
type PatchField[T any] struct {
	Given bool
	Opt[T]
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (m *PatchField[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	m.Given = true
	if dec.PeekKind() == 'n' {
		return dec.SkipValue()
	}
	m.Set = true
	return json.UnmarshalDecode(dec, &m.V)
}

// SettingsType is the request that changes settings: a struct with a field for each row
// of the table, so that the decoder treats it like any other request.
var SettingsType = func() reflect.Type {
	types := map[job.SettingType]reflect.Type{
		job.SettingDuration: reflect.TypeFor[PatchField[float64]](),
		job.SettingCount:    reflect.TypeFor[PatchField[int64]](),
		job.SettingRate:     reflect.TypeFor[PatchField[float64]](),
		job.SettingChoice:   reflect.TypeFor[PatchField[string]](),
		job.SettingSwitch:   reflect.TypeFor[PatchField[bool]](),
		job.SettingText:     reflect.TypeFor[PatchField[string]](),
		job.SettingNames:    reflect.TypeFor[PatchField[List[string, IndexLimit]]](),
		job.SettingBackoff:  reflect.TypeFor[PatchField[BackoffRequest]](),
		job.SettingPush:     reflect.TypeFor[PatchField[PushRequest]](),
	}
	var fields []reflect.StructField
	for i, s := range job.Settings {
		tag := reflect.StructTag(fmt.Sprintf(`json:"%s"`, s.Name))
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("Setting%d", i), Type: types[s.Type], Tag: tag})
	}
	return reflect.StructOf(fields)
}()

// Apply changes one setting as its field says.
func (m *PatchField[T]) Apply(s *job.Setting, to *jobpb.TopicSettings, number func(T) (int64, error)) error {
	if m.Given {
		s.Clear(to)
	}
	if m.Set {
		n, err := number(m.V)
		if err == nil {
			err = s.SetNumber(to, n)
		}
		return err
	}
	return nil
}

// Thousandths converts a rate of a topic or a kick, in jobs per second, exactly.
func Thousandths(rate float64) (uint64, error) {
	// The negated form also refuses NaN.
	if !(rate >= 0.001 && rate <= job.MaxRateMilli/1000) {
		return 0, job.Invalid("rate", "is %g jobs a second; it must be between 0.001 and %d", rate, job.MaxRateMilli/1000)
	}
	milli := math.Round(rate * 1000)
	if milli/1000 != rate {
		return 0, job.Invalid("rate", "is %g jobs a second; it can have at most three decimals", rate)
	}
	return uint64(milli), nil
}

// Sweep selects the jobs of a topic for a sweep.
type Sweep struct {
	Max    Opt[int64]  `json:"max" help:"How many jobs at most; or give all." limit:"kick"`
	All    Opt[bool]   `json:"all"`
	Filter Opt[Filter] `json:"filter"`
}

// Check returns how many jobs at most, and the filter; nil means any job.
func (q *Sweep) Check() (most uint64, filter *jobpb.Filter, err error) {
	if most, err = q.Most(); err == nil && q.Filter.Set {
		if filter, err = q.Filter.V.Proto(time.Now()); err != nil {
			err = job.Under("filter", err)
		}
	}
	return most, filter, err
}

// Most returns the limit on jobs; for all of them, a number that is never reached.
func (q *Sweep) Most() (uint64, error) {
	switch {
	case q.Max.Set && q.All.V:
		return 0, job.Invalid("max", "and all are both given; give one")
	case q.All.V:
		return math.MaxUint64, nil
	case !q.Max.Set:
		return 0, job.Invalid("max", "is missing; it takes 1 to %d; or give all", job.MaxKick)
	}
	n, err := Within("max", q.Max.V, job.MaxKick)
	return uint64(n), err
}

// KickOptions are what a kick has besides the choice of its jobs.
type KickOptions struct {
	Rate    Opt[float64] `json:"rate" help:"Jobs a second; spreads the kicked jobs over time." limit:"rate"`
	ToTopic Opt[string]  `json:"to_topic"`
}

// Check returns the rate in thousandths of a job a second; 0: all at once.
func (o *KickOptions) Check() (rate uint32, err error) {
	if o.Rate.Set {
		milli, err := Thousandths(o.Rate.V)
		if err != nil {
			return 0, err
		}
		rate = uint32(milli)
	}
	if o.ToTopic.Set {
		err = job.CheckTopic("to_topic", o.ToTopic.V)
	}
	return rate, err
}

type KickTopicRequest struct {
	Sweep
	KickOptions
}

type ReleaseTopicRequest struct {
	Sweep
	Consumer Opt[string] `json:"consumer" help:"Only jobs that this consumer reserved; those of all consumers unless given." limit:"consumer"`
	Reason   Opt[string] `json:"reason"`
}

type PurgeRequest struct {
	Sweep
	State     Opt[string] `json:"state" required:"state" help:"The state of the jobs to delete." of:"delayed ready dead"`
	DropEmpty Opt[bool]   `json:"drop_empty" help:"Drop the topic, with its totals and its pause, if it has no jobs then, also no retained ones. Needs cluster version 2."`
}

type Stats struct {
	Topics   uint64 `json:"topics" help:"How many topics there are."`
	Delayed  uint64 `json:"delayed"`
	Ready    uint64 `json:"ready"`
	Reserved uint64 `json:"reserved"`
	Dead     uint64 `json:"dead"`
	Retained uint64 `json:"retained"`
}

type Topic struct {
	Topic            string `json:"topic"`
	Delayed          uint64 `json:"delayed"`
	Ready            uint64 `json:"ready"`
	Reserved         uint64 `json:"reserved"`
	Dead             uint64 `json:"dead"`
	Retained         uint64 `json:"retained,omitzero"`
	OldestDueAt      Time   `json:"oldest_due_at,omitzero" help:"The earliest due time of a delayed or ready job."`
	Paused           bool   `json:"paused"`
	PausedUntil      Time   `json:"paused_until,omitzero"`
	ThrottledUntil   Time   `json:"throttled_until,omitzero" help:"When the topic's rate allows the next job."`
	Added            uint64 `json:"added" help:"Jobs added so far."`
	Finished         uint64 `json:"finished" help:"Jobs finished so far."`
	Deleted          uint64 `json:"deleted"`
	Timeouts         uint64 `json:"timeouts" help:"Reservations that expired so far."`
	Died             uint64 `json:"died" help:"Jobs that died so far."`
	Expired          uint64 `json:"expired,omitzero" help:"Jobs that nobody took in time so far."`
	SettingsRevision uint64 `json:"settings_revision,omitzero" help:"The revision of the topic's settings."`
}

type TopicReply struct{ Topic }

type TopicPage struct {
	Topics []Topic `json:"topics"`
	Next   string  `json:"next,omitzero"`
}

type Rates struct {
	Topic     string   `json:"topic,omitzero"`
	Start     Time     `json:"start,omitzero" help:"When the first step begins; absent if the node has recorded nothing."`
	Step      Seconds  `json:"step" help:"How long a step is, in seconds." limit:"positive"`
	Added     []uint64 `json:"added" help:"Jobs added in each step, the last one of the step under way."`
	Delivered []uint64 `json:"delivered" help:"Jobs handed to consumers in each step."`
	Finished  []uint64 `json:"finished" help:"Jobs finished in each step."`
	Deleted   []uint64 `json:"deleted" help:"Jobs deleted in each step."`
	Timeouts  []uint64 `json:"timeouts" help:"Reservations that expired in each step."`
	Died      []uint64 `json:"died" help:"Jobs that died in each step."`
	Expired   []uint64 `json:"expired" help:"Jobs that nobody took in time in each step."`
}

type Forecast struct {
	Topic   string   `json:"topic,omitzero"`
	Start   Time     `json:"start" help:"When the first step begins."`
	Step    Seconds  `json:"step" help:"How long a step is, in seconds." limit:"positive"`
	Jobs    []uint64 `json:"jobs" help:"Delayed jobs that are due in each step."`
	Before  uint64   `json:"before" help:"Delayed jobs that are due before the first step."`
	After   uint64   `json:"after" help:"Delayed jobs that are due after the last step."`
	Overdue uint64   `json:"overdue" help:"Of all these, jobs that were due before the present minute."`
}

type DueTopics struct {
	Start  Time       `json:"start" help:"When the time begins."`
	Step   Seconds    `json:"step" help:"How long it is, in seconds." limit:"positive"`
	Jobs   uint64     `json:"jobs" help:"Delayed jobs of all topics that are due then."`
	Topics []DueTopic `json:"topics" help:"The topics of which most jobs are due then, the most first."`
}

type DueTopic struct {
	Topic string `json:"topic"`
	Jobs  uint64 `json:"jobs" help:"Delayed jobs of the topic that are due then."`
}

type DeadReasons struct {
	Topic      string       `json:"topic,omitzero"`
	Jobs       uint64       `json:"jobs" help:"All dead jobs."`
	Reasons    *uint64      `json:"reasons,omitzero" help:"How many reasons they have."`
	Groups     []DeadReason `json:"groups" help:"The groups with most jobs, the most first."`
	More       bool         `json:"more,omitzero" help:"Whether there are more groups."`
	Incomplete bool         `json:"incomplete,omitzero" help:"Whether a group that is missing may have more jobs than the last one listed, but less than twice as many."`
}

type DeadReason struct {
	Reason      string `json:"reason" help:"The reason with which the jobs died, cut to 200 bytes; empty: none was given."`
	Jobs        uint64 `json:"jobs" help:"Dead jobs with this reason."`
	Topics      uint64 `json:"topics,omitzero" help:"How many topics they are in."`
	Example     string `json:"example"`
	FirstDiedAt Time   `json:"first_died_at,omitzero"`
}

type DeadTopics struct {
	Reason     string      `json:"reason" help:"The reason that was asked for."`
	Jobs       uint64      `json:"jobs" help:"All dead jobs with this reason."`
	Topics     uint64      `json:"topics" help:"How many topics they are in."`
	Groups     []DeadTopic `json:"groups" help:"The topics with most of these jobs, the most first."`
	More       bool        `json:"more,omitzero" help:"Whether there are more topics."`
	Incomplete bool        `json:"incomplete,omitzero" help:"Whether a topic that is missing may have more jobs than the last one listed."`
}

type DeadTopic struct {
	Topic       string `json:"topic"`
	Jobs        uint64 `json:"jobs" help:"Dead jobs of the topic with this reason."`
	Example     string `json:"example"`
	FirstDiedAt Time   `json:"first_died_at,omitzero"`
}

type Kicked struct {
	Kicked uint64 `json:"kicked"`
	More   bool   `json:"more,omitzero"`
}

type Released struct {
	Released uint64 `json:"released" help:"Jobs released."`
	More     bool   `json:"more,omitzero"`
}

type Rescheduled struct {
	Rescheduled uint64 `json:"rescheduled" help:"Jobs that have another due time now."`
	Unchanged   uint64 `json:"unchanged,omitzero" help:"Jobs that were already due when they should be."`
	Skipped     uint64 `json:"skipped,omitzero" help:"Jobs that cannot be due then, for example because they expire before."`
	Reason      string `json:"reason,omitzero" help:"Why the first job was skipped."`
	More        bool   `json:"more,omitzero"`
	Next        string `json:"next,omitzero" help:"The cursor of the call that goes on."`
}

type Purged struct {
	Deleted uint64 `json:"deleted"`
	More    bool   `json:"more,omitzero"`
}

type Moved struct {
	Moved   uint64 `json:"moved" help:"Jobs moved."`
	Skipped uint64 `json:"skipped,omitzero" help:"Jobs that cannot be in that topic, for example because it permits no push_url."`
	Reason  string `json:"reason,omitzero" help:"Why the first job was skipped."`
	More    bool   `json:"more,omitzero"`
	Next    string `json:"next,omitzero" help:"The cursor of the call that goes on."`
}

type Pause struct {
	Topic       string `json:"topic"`
	Paused      bool   `json:"paused"`
	PausedUntil Time   `json:"paused_until,omitzero"`
}

type TopicSettings struct {
	Topic    string   `json:"topic"`
	Revision uint64   `json:"revision"`
	Settings Settings `json:"settings" help:"The settings of the topic."`
}

type TopicSettingsReply struct{ TopicSettings }

type TopicSettingsPage struct {
	Topics []TopicSettings `json:"topics"`
	Next   string          `json:"next,omitzero"`
}

type Push struct {
	URL         string  `json:"url,omitzero"`
	HasSecret   bool    `json:"has_secret" help:"Whether posts are signed."`
	Timeout     Seconds `json:"timeout,omitzero"`
	Concurrency uint64  `json:"concurrency,omitzero"`
	JobURLs     bool    `json:"job_urls,omitzero"`
}

// Settings and SettingsRequest have the rows of job.Settings.
type (
	Settings        struct{}
	SettingsRequest struct{}
)
