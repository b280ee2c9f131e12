package ui

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tarry/job"
)

// rescheduleTime bounds how long one request works on a herd: then the page says how far it
// is, and asks whether to go on.
const rescheduleTime = 8 * time.Second

// reschedule is one way to change the due times of the jobs of a step.
type reschedule struct {
	Path  string // of the action
	Verb  string // "Spread"
	field string // of the form, and of the API
	done  string // what the jobs are then; %s is the duration
}

var (
	spreadHerd   = reschedule{Path: upcomingPath + "/spread", Verb: "Spread", field: "spread", done: "spread over %s"}
	postponeHerd = reschedule{Path: upcomingPath + "/postpone", Verb: "Postpone", field: "postpone", done: "postponed by %s"}
)

// herd is the delayed jobs of a topic that are due within a step, and what to do with them.
type herd struct {
	topic    string
	from, to time.Time
	length   time.Duration // of the spread or the postponement
	earlier  bool
}

// herdOf reads a form.
func (a *reschedule) herdOf(q *request) (*herd, error) {
	h := &herd{earlier: q.value("earlier") != ""}
	var err error
	if h.topic, err = q.required("topic"); err != nil {
		return nil, err
	}
	if h.from, err = time.Parse(time.RFC3339, q.value("from")); err != nil {
		return nil, invalid("from", "from must be an instant such as 2030-01-31T12:00:00Z")
	}
	step, err := strconv.ParseUint(q.value("step"), 10, 32)
	if err != nil || step == 0 {
		return nil, invalid("step", "step must be a number of seconds")
	}
	h.to = h.from.Add(time.Duration(step) * time.Second)
	h.length, err = lengthOf(a.field, strings.TrimSpace(q.value(a.field)))
	return h, err
}

// lengthOf reads a duration. A number alone is not taken: one would write minutes here, and
// it is seconds elsewhere.
func lengthOf(field, text string) (time.Duration, error) {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return 0, invalid(field, field+": "+text+" has no unit; write 30m for half an hour")
	}
	d, err := job.ParseDuration(text)
	switch {
	case err != nil:
		return 0, invalid(field, field+": "+err.Error())
	case d <= 0:
		return 0, invalid(field, field+" must be more than 0")
	}
	return d, nil
}

// rescheduleHerd spreads or postpones the jobs of a step.
func rescheduleHerd(a *reschedule) func(*request) (*outcome, error) {
	return func(q *request) (*outcome, error) {
		h, err := a.herdOf(q)
		if err != nil {
			return nil, err
		}
		if !q.confirmed() {
			c, err := q.confirmHerd(a, h)
			return &outcome{confirm: c}, err
		}
		return q.rescheduleJobs(a, h)
	}
}

// confirmHerd asks before the jobs of a step are changed, with their number.
func (q *request) confirmHerd(a *reschedule, h *herd) (*confirm, error) {
	n, err := q.dueWithin(h)
	if err != nil {
		return nil, err
	}
	if a == &spreadHerd && !h.earlier {
		if err := q.beginAtFirst(h); err != nil {
			return nil, err
		}
	}
	first, last := h.from, h.from.Add(h.length)
	rule := "None becomes due earlier than it is."
	switch {
	case a == &postponeHerd:
		first, last = h.from.Add(h.length), h.to.Add(h.length)
		rule = "Each becomes due " + span(h.length) + " later."
	case h.earlier:
		rule = "Some become due earlier than they are."
	}
	return &confirm{
		Title: fmt.Sprintf("%s %s?", a.Verb, plural(n, "job")), Verb: a.Verb + " them",
		Text:  "Jobs that are changed by others meanwhile stay as they are. " + rule,
		Items: []string{"topic " + h.topic, "due now: " + period(h.from, h.to), "due then: " + period(first, last)},
	}, nil
}

// beginAtFirst lets the form begin with the second in which the first job of the herd is
// due. A spread from the beginning of an hour would leave those jobs where they are whose
// turn is before their due time: most of them, if they are due at its end.
func (q *request) beginAtFirst(h *herd) error {
	var page struct {
		Jobs []struct {
			DueAt time.Time `json:"due_at"`
		} `json:"jobs"`
	}
	query := url.Values{"state": {"delayed"}, "max": {"1"}, "due_from": {h.from.UTC().Format(dueFormat)}, "due_to": {h.to.UTC().Format(dueFormat)}}
	if err := q.read("/v1/topics/"+segment(h.topic)+"/jobs", query, &page); err != nil || len(page.Jobs) == 0 {
		return err
	}
	h.from = page.Jobs[0].DueAt.Truncate(time.Second)
	q.r.PostForm.Set("from", h.from.UTC().Format(time.RFC3339))
	q.r.PostForm.Set("step", strconv.FormatInt(int64(h.to.Sub(h.from)/time.Second), 10))
	return nil
}

func period(from, to time.Time) string { return "from " + stamp(from) + " to " + stamp(to) }

// dueWithin returns how many jobs of the topic are due within the step.
func (q *request) dueWithin(h *herd) (uint64, error) {
	var f struct {
		Jobs []uint64 `json:"jobs"`
	}
	query := url.Values{"start": {h.from.UTC().Format(dueFormat)}, "step": {seconds(h.to.Sub(h.from))}, "steps": {"1"}}
	if err := q.read("/v1/topics/"+segment(h.topic)+"/forecast", query, &f); err != nil || len(f.Jobs) == 0 {
		return 0, err
	}
	return f.Jobs[0], nil
}

// rescheduleJobs makes calls until all jobs are done or it is time to say how far it is. The
// form of that page goes on where this one ended.
func (q *request) rescheduleJobs(a *reschedule, h *herd) (*outcome, error) {
	in := map[string]any{
		"all": true, a.field: h.length.Seconds(),
		"filter": map[string]any{"due_from": h.from.UTC().Format(dueFormat), "due_to": h.to.UTC().Format(dueFormat)},
	}
	if h.earlier && a == &spreadHerd {
		in["earlier"] = true
	}
	if cursor := q.value("cursor"); cursor != "" {
		in["cursor"] = cursor
	}
	jobs, _ := strconv.ParseUint(q.value("done"), 10, 64) // of the requests before
	skipped := ""
	for end := q.now().Add(rescheduleTime); ; {
		var out struct {
			Rescheduled uint64 `json:"rescheduled"`
			Skipped     uint64 `json:"skipped"`
			Reason      string `json:"reason"`
			Next        string `json:"next"`
		}
		if f := q.api.call(q.r.Context(), http.MethodPost, "/v1/topics/"+segment(h.topic)+"/reschedule", in, &out); f != nil {
			if jobs > 0 {
				f = f.after(plural(jobs, "job") + " " + fmt.Sprintf(a.done, span(h.length)))
			}
			return nil, f
		}
		jobs += out.Rescheduled
		if out.Skipped > 0 {
			skipped = fmt.Sprintf(" %s stayed: %s.", plural(out.Skipped, "other job"), out.Reason)
		}
		if out.Next == "" {
			break
		}
		in["cursor"] = out.Next
		if q.now().After(end) {
			q.r.PostForm.Set("cursor", out.Next)
			q.r.PostForm.Set("done", strconv.FormatUint(jobs, 10))
			q.r.PostForm.Del(confirmedField)
			return &outcome{confirm: &confirm{
				Title: fmt.Sprintf("%s %s so far. Go on?", plural(jobs, "job"), fmt.Sprintf(a.done, span(h.length))), Verb: "Go on",
				Text: "There are more jobs that were due in this time." + skipped, Items: []string{"topic " + h.topic},
			}}, nil
		}
	}
	flash := fmt.Sprintf("%s of %s %s.%s", plural(jobs, "job"), h.topic, fmt.Sprintf(a.done, span(h.length)), skipped)
	return &outcome{to: q.back(address(upcomingPath, "topic", h.topic)), flash: flash}, nil
}
