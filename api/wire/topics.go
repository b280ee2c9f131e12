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
	Reason Opt[string] `json:"exact_reason"`
	Max    Opt[int64]  `json:"max"`
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
	PurgeDeadRequest
	KickOptions
}

type MoveTopicRequest struct {
	Sweep
	To     Opt[string]               `json:"to"`
	States List[string, StatesLimit] `json:"states"`
	Cursor Opt[string]               `json:"cursor"`
}

type PauseRequest struct {
	For   Opt[float64] `json:"for"`
	Until Timestamp    `json:"until"`
}

// PushRequest is the push target of a topic in a request.
type PushRequest struct {
	URL         Opt[string]  `json:"url"`
	Secret      Opt[string]  `json:"secret"`
	Timeout     Opt[float64] `json:"timeout"`
	Concurrency Opt[int64]   `json:"concurrency"`
	JobURLs     Opt[bool]    `json:"job_urls"`
}

// RescheduleRequest asks for other due times of the delayed jobs of a topic that are due in a
// range of time.
type RescheduleRequest struct {
	Sweep
	Spread   Opt[float64] `json:"spread"`
	Earlier  Opt[bool]    `json:"earlier"`
	Postpone Opt[float64] `json:"postpone"`
	Cursor   Opt[string]  `json:"cursor"`
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
	Max    Opt[int64]  `json:"max"`
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
	Rate    Opt[float64] `json:"rate"`
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
	Consumer Opt[string] `json:"consumer"`
	Reason   Opt[string] `json:"reason"`
}

type PurgeRequest struct {
	Sweep
	State     Opt[string] `json:"state"`
	DropEmpty Opt[bool]   `json:"drop_empty"`
}
