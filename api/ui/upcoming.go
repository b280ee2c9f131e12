package ui

import (
	"net/url"
	"strconv"
	"time"

	"tarry/auth"
	"tarry/job"
)

const upcomingPath = Root + "upcoming"

// herdFactor is how many times the mean of the steps with jobs makes a step a herd, if it has
// at least herdJobs.
const herdFactor, herdJobs = 4, 100

// upcomingView is the data of the page of what falls due.
type upcomingView struct {
	Topic string // empty: all topics
	// Choose: the person may not read all topics, and has not named one.
	Choose bool
	Tabs   []tab
	Step   time.Duration
	Within string // what the steps are together: "Next hour"
	Unit   string // what a step is: "minute"
	Total  uint64 // in the steps
	Peak   uint64 // of a step
	Steps  []dueStep
	Before uint64
	After  uint64
	// Overdue jobs were due before the present minute.
	Overdue uint64
	Axis    []string    // below the bars, from left to right
	Chosen  *chosenStep // nil: no step is looked at
}

// dueStep is one step of time.
type dueStep struct {
	At      time.Time
	Jobs    uint64
	Herd    bool
	Under   bool // it is under way
	Chosen  bool
	Address string // of the topics behind it
	// The bar, in a drawing of 100 by 100.
	X, Y, W, H float64
}

// chosenStep is a step with the topics that have most jobs in it.
type chosenStep struct {
	At, End time.Time
	Jobs    uint64
	Topics  []dueTopic
	// Changeable are those of Topics whose jobs the person may change.
	Changeable []dueTopic
	// Topic is the one that the form changes; Spread and Postpone are its durations.
	Topic, Spread, Postpone string
	Earlier                 bool
}

type dueTopic struct {
	Topic string `json:"topic"`
	Jobs  uint64 `json:"jobs"`
	// Listed is the address of these jobs, to look at them or change them.
	Listed string `json:"-"`
}

// scales are the steps that can be shown.
var scales = []struct {
	within string // what all steps are together
	unit   string // what one step is
	step   time.Duration
	steps  int
}{{"Next hour", "minute", time.Minute, 60}, {"Next two days", "hour", time.Hour, 48}, {"Next two months", "day", 24 * time.Hour, 60}}

// showUpcoming shows how many jobs fall due in the next steps of time.
func showUpcoming(q *request) (any, error) {
	v := &upcomingView{Topic: q.value("topic")}
	scale := scales[0]
	for _, s := range scales {
		if q.value("step") == seconds(s.step) {
			scale = s
		}
	}
	v.Step, v.Within, v.Unit = scale.step, scale.within, scale.unit
	for _, s := range scales {
		v.Tabs = append(v.Tabs, tab{Name: s.within + " by " + s.unit, Address: address(upcomingPath, "topic", v.Topic, "step", seconds(s.step)), Current: s.step == scale.step})
	}
	if v.Choose = v.Topic == "" && !q.person.mayAll(auth.Read) && q.person.maySome(auth.Read); v.Choose {
		return v, nil
	}
	path := "/v1/forecast"
	if v.Topic != "" {
		path = "/v1/topics/" + segment(v.Topic) + "/forecast"
	}
	var f struct {
		Start   time.Time `json:"start"`
		Jobs    []uint64  `json:"jobs"`
		Before  uint64    `json:"before"`
		After   uint64    `json:"after"`
		Overdue uint64    `json:"overdue"`
	}
	err := q.read(path, url.Values{"step": {seconds(scale.step)}, "steps": {strconv.Itoa(scale.steps)}}, &f)
	if err != nil {
		return nil, err
	}
	v.Before, v.After, v.Overdue = f.Before, f.After, f.Overdue
	v.draw(f.Start, f.Jobs, q.now())
	if at := q.value("at"); at != "" {
		if v.Chosen, err = q.dueAt(at, v.Topic, scale.step); err != nil {
			return nil, err
		}
		for i := range v.Steps {
			v.Steps[i].Chosen = v.Steps[i].At.Equal(v.Chosen.At)
		}
	}
	return v, nil
}

// axisFormat has the format of the instants below the bars, by the step.
var axisFormat = map[time.Duration]string{time.Minute: "15:04 UTC", time.Hour: "Mon 15:04 UTC", 24 * time.Hour: "2 Jan"}

// draw makes the steps and their bars.
func (v *upcomingView) draw(start time.Time, jobs []uint64, now time.Time) {
	filled := uint64(0)
	for _, n := range jobs {
		v.Total += n
		v.Peak = max(v.Peak, n)
		if n > 0 {
			filled++
		}
	}
	width := 100 / float64(max(len(jobs), 1))
	for i, n := range jobs {
		at := start.Add(time.Duration(i) * v.Step)
		s := dueStep{At: at, Jobs: n, Address: address(upcomingPath, "topic", v.Topic, "step", seconds(v.Step), "at", at.UTC().Format(dueFormat))}
		s.Under = !at.After(now)
		s.Herd = n >= herdJobs && n*filled > herdFactor*v.Total
		if n > 0 {
			s.H = max(100*float64(n)/float64(v.Peak), 1)
		}
		s.X, s.Y, s.W = float64(i)*width, 100-s.H, width*0.8
		v.Steps = append(v.Steps, s)
	}
	for part := range time.Duration(3) {
		v.Axis = append(v.Axis, start.Add(part*v.Step*time.Duration(len(jobs))/2).UTC().Format(axisFormat[v.Step]))
	}
}

// dueAt returns the topics with most jobs in a step, or the one that the page is about.
func (q *request) dueAt(at, topic string, step time.Duration) (*chosenStep, error) {
	var due struct {
		Start  time.Time  `json:"start"`
		Jobs   uint64     `json:"jobs"`
		Topics []dueTopic `json:"topics"`
	}
	if err := q.read("/v1/forecast/topics", url.Values{"start": {at}, "step": {seconds(step)}, "max": {"20"}}, &due); err != nil {
		return nil, err
	}
	c := &chosenStep{
		At: due.Start, End: due.Start.Add(step), Jobs: due.Jobs, Topics: due.Topics,
		Topic: topic, Spread: orElse(q.value("spread"), job.DurationText(max(2*step, 30*time.Minute))), Postpone: orElse(q.value("postpone"), job.DurationText(max(step, time.Hour))), Earlier: q.value("earlier") != "",
	}
	if topic != "" {
		n, err := q.dueWithin(&herd{topic: topic, from: c.At, to: c.End})
		if err != nil {
			return nil, err
		}
		c.Jobs, c.Topics = n, nil
		if n > 0 {
			c.Topics = []dueTopic{{Topic: topic, Jobs: n}}
		}
	}
	for i := range c.Topics {
		t := &c.Topics[i]
		t.Listed = address(Root+"topic", "topic", t.Topic, "state", "delayed", "due_from", c.At.UTC().Format(dueFormat), "due_to", c.End.UTC().Format(dueFormat))
		if q.person.may(auth.Manage, t.Topic) {
			c.Changeable = append(c.Changeable, *t)
		}
	}
	return c, nil
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }
