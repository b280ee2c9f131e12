package ui

import (
	"net/http"
	"net/url"
	"strconv"

	"tarry/client"
)

const (
	schedulesPath = Root + "schedules"
	schedulePath  = Root + "schedule"
)

// schedulesPage is how many schedules a page has.
const schedulesPage = 50

// previewed is how many runs a preview lists.
const previewed = 10

// schedulesView is the data of the page of schedules.
type schedulesView struct {
	Schedules   []scheduleRow
	First, Next string
	Preview     preview
}

// scheduleRow is one schedule with its last run; nil: it had none.
type scheduleRow struct {
	client.ScheduleInfo
	Last *client.PastRun
}

// preview is what an expression in the form would do.
type preview struct {
	Spec, Zone string
	Runs       []client.PlannedRun
	Failure    *failure
}

// scheduleView is the data of the page of one schedule.
type scheduleView struct {
	client.ScheduleInfo
	Next []client.PlannedRun
	Past []client.PastRun // the latest first
	Body bodyView
}

// showSchedules lists the schedules by name, and previews an expression.
func showSchedules(q *request) (any, error) {
	v := &schedulesView{Preview: preview{Spec: q.value("spec"), Zone: q.value("zone")}}
	query := url.Values{"max": {strconv.Itoa(schedulesPage)}}
	if after := q.value("after"); after != "" {
		query.Set("cursor", after)
		v.First = schedulesPath
	}
	var page struct {
		Schedules []client.ScheduleInfo `json:"schedules"`
		Next      string                `json:"next"`
	}
	if err := q.read("/v1/schedules", query, &page); err != nil {
		return nil, err
	}
	for _, s := range page.Schedules {
		row := scheduleRow{ScheduleInfo: s}
		if c := s.Counts; c.Started+c.Skipped+c.Missed+c.Refused > 0 {
			past, err := q.pastRuns(s.Name)
			if err != nil {
				return nil, err
			}
			if len(past) > 0 {
				row.Last = &past[0]
			}
		}
		v.Schedules = append(v.Schedules, row)
	}
	v.Next = address(schedulesPath, "after", page.Next)
	if page.Next == "" {
		v.Next = ""
	}
	if v.Preview.Spec != "" {
		in := map[string]any{"spec": v.Preview.Spec, "max": previewed}
		if v.Preview.Zone != "" {
			in["zone"] = v.Preview.Zone
		}
		var out struct {
			Runs []client.PlannedRun `json:"runs"`
		}
		// This node computes it: nothing is changed, and no leader is needed.
		v.Preview.Failure = q.api.call(q.r.Context(), http.MethodPost, "/v1/schedules/preview", in, &out)
		v.Preview.Runs = out.Runs
	}
	return v, nil
}

// showSchedule shows one schedule with its last and next runs.
func showSchedule(q *request) (any, error) {
	name, err := q.required("schedule")
	if err != nil {
		return nil, err
	}
	q.title = "Schedule " + name
	v := &scheduleView{}
	at := "/v1/schedules/" + segment(name)
	if err := q.read(at, nil, &v.ScheduleInfo); err != nil {
		return nil, err
	}
	if v.Past, err = q.pastRuns(name); err != nil {
		return nil, err
	}
	if !v.Paused {
		var next struct {
			Runs []client.PlannedRun `json:"runs"`
		}
		if f := q.api.get(q.r.Context(), at+"/preview?max="+strconv.Itoa(previewed), &next); f != nil && f.Code != "not_found" {
			q.failure = f
		}
		v.Next = next.Runs
	}
	v.Body = bodyOf(&client.Job{Body: v.Job.Body}, "")
	return v, nil
}

// pastRuns returns the last runs of a schedule, the latest first; none if it was deleted
// meanwhile.
func (q *request) pastRuns(name string) ([]client.PastRun, error) {
	var past struct {
		Runs []client.PastRun `json:"runs"`
	}
	if err := q.read("/v1/schedules/"+segment(name)+"/runs", nil, &past); err != nil && !isNotFound(err) {
		return nil, err
	}
	return past.Runs, nil
}

// onSchedule returns an action of one schedule, which is a POST to a path of the API below
// it.
func onSchedule(verb, done string) func(*request) (*outcome, error) {
	return func(q *request) (*outcome, error) {
		name, err := q.required("schedule")
		if err != nil {
			return nil, err
		}
		if err := q.do("/v1/schedules/"+segment(name)+"/"+verb, nil, nil); err != nil {
			return nil, err
		}
		return &outcome{to: q.back(address(schedulePath, "schedule", name)), flash: "Schedule " + name + " " + done + "."}, nil
	}
}

// deleteSchedule deletes a schedule; the jobs of its runs stay.
func deleteSchedule(q *request) (*outcome, error) {
	name, err := q.required("schedule")
	if err != nil {
		return nil, err
	}
	if !q.confirmed() {
		return &outcome{confirm: &confirm{
			Title: "Delete schedule " + name + "?", Verb: "Delete", Danger: true, Items: []string{name},
			Text: "No more runs start. Jobs of earlier runs stay.",
		}}, nil
	}
	if err := q.send(http.MethodDelete, "/v1/schedules/"+segment(name), nil, nil); err != nil {
		return nil, err
	}
	return &outcome{to: schedulesPath, flash: "Schedule " + name + " is deleted."}, nil
}
