package ui

import (
	"fmt"

	"tarry/client"
)

// topicView is the data of the page of a topic.
type topicView struct {
	Topic topicRow
	State string // of the jobs that are listed
	Tabs  []tab
	List  *jobList
	// Filter selects the jobs that are listed; AllJobs is the address without it.
	Filter  jobFilter
	AllJobs string
}

// tab leads to the jobs of one state.
type tab struct {
	Name    string
	Address string
	Count   uint64
	Current bool
	Exact   bool // Count is known
}

// showTopic lists the jobs of a topic in one state.
func showTopic(q *request) (any, error) {
	name, err := q.required("topic")
	if err != nil {
		return nil, err
	}
	t, err := q.topic(name)
	if err != nil {
		return nil, err
	}
	q.title = "Topic " + name
	v := &topicView{Topic: topicRow{Topic: *t, Flow: q.flowOf(name)}, State: q.value("state")}
	if v.Topic.Late, err = q.lateOf(t); err != nil {
		return nil, err
	}
	if v.State == "" {
		v.State = busiest(t)
	}
	v.Tabs = topicTabs(t, v.State)
	v.Filter = q.filter()
	v.AllJobs = address(Root+"topic", "topic", name, "state", v.State)
	v.List = &jobList{
		Caption: "Jobs that are " + v.State, Topic: name, Columns: columnsOf(v.State), Actions: actionsOn(v.State), All: sweepsOf(t, v.State, v.Filter.Any()),
		Fields: v.Filter.fields(), Empty: emptyState{
			Title: "No job is " + v.State, Text: "Jobs in other states are under the other tabs. To add one that is due now:",
			Commands: []string{"tarry add --topic " + shellWord(name) + ` '{"to":"world"}'`},
		},
	}
	v.List.Fields.Set("topic", name)
	v.List.Fields.Set("state", v.State)
	if v.Filter.Any() {
		v.List.Empty = emptyState{Title: "No job matches here", Text: "Other jobs that are " + v.State + " do not match the filter, or are behind the next page: a page looks at 10,000 jobs at most."}
	}
	query, err := v.Filter.query()
	if err != nil {
		return nil, err
	}
	query.Set("state", v.State)
	return v, q.list(v.List, "/v1/topics/"+segment(name)+"/jobs", query, append(v.Filter.pairs(), "topic", name, "state", v.State)...)
}

// busiest returns the state to show first: ready jobs wait now.
func busiest(t *client.Topic) string {
	switch {
	case t.Ready > 0:
		return "ready"
	case t.Reserved > 0:
		return "reserved"
	case t.Delayed == 0 && t.Dead > 0:
		return "dead"
	}
	return "delayed"
}

func topicTabs(t *client.Topic, current string) []tab {
	tabs := []tab{
		{Name: "delayed", Count: t.Delayed, Exact: true}, {Name: "ready", Count: t.Ready, Exact: true},
		{Name: "reserved", Count: t.Reserved, Exact: true}, {Name: "dead", Count: t.Dead, Exact: true},
	}
	if t.Retained > 0 || current == "finished" || current == "deleted" {
		tabs = append(tabs, tab{Name: "finished"}, tab{Name: "deleted"}) // only their sum is known
	}
	for i := range tabs {
		tabs[i].Address = address(Root+"topic", "topic", t.Name, "state", tabs[i].Name)
		tabs[i].Current = tabs[i].Name == current
	}
	return tabs
}

// jobsVerb is a change of selected jobs.
type jobsVerb struct {
	Path   string // of the page with the action
	Verb   string // "Delete"
	Danger bool   // it cannot be undone
	call   string // path of the API
	done   string // "deleted"
	text   string // what it means for those jobs
}

var (
	deleteVerb = jobsVerb{Path: Root + "jobs/delete", Verb: "Delete", Danger: true, call: "/v1/delete", done: "deleted", text: "They are gone for good. A consumer that works on one of them cannot finish it."}
	kickVerb   = jobsVerb{Path: Root + "jobs/kick", Verb: "Kick", call: "/v1/kick", done: "kicked", text: "They become ready at once, with all their attempts."}
)

// changeJobs changes the jobs that a form selects: those of its fields "id", or the one of
// the field "only", which is a button in the job's row.
func changeJobs(v jobsVerb) func(*request) (*outcome, error) {
	return func(q *request) (*outcome, error) {
		ids := q.r.PostForm["id"]
		if only := q.value("only"); only != "" {
			ids = []string{only}
			q.r.PostForm["id"] = ids
		}
		if len(ids) == 0 {
			return nil, invalid("", "No job is selected.")
		}
		if !q.confirmed() {
			c := &confirm{
				Title: fmt.Sprintf("%s %s?", v.Verb, plural(uint64(len(ids)), "job")),
				Text:  v.text, Verb: fmt.Sprintf("%s %s", v.Verb, plural(uint64(len(ids)), "job")), Danger: v.Danger, Items: ids,
			}
			return &outcome{confirm: c}, nil
		}
		done, err := q.changeJobs(v, ids)
		if err != nil {
			return nil, err
		}
		return &outcome{to: q.back(Root), flash: fmt.Sprintf("%s %s.", plural(uint64(done), "job"), v.done)}, nil
	}
}

// changeJobs changes jobs by id and returns how many. It fails with the first error if any
// could not be changed.
func (q *request) changeJobs(v jobsVerb, ids []string) (done int, err error) {
	type ref struct {
		ID string `json:"id"`
	}
	in := struct {
		Jobs []ref `json:"jobs"`
	}{}
	for _, id := range ids {
		in.Jobs = append(in.Jobs, ref{id})
	}
	var out struct {
		Results []struct {
			Success bool `json:"success"`
			failure
		} `json:"results"`
	}
	if err := q.do(v.call, in, &out); err != nil {
		return 0, err
	}
	var first *failure
	unknown := false
	for i := range out.Results {
		unknown = unknown || out.Results[i].Unknown()
		switch r := &out.Results[i]; {
		case r.Success:
			done++
		case first == nil:
			first = &r.failure
		}
	}
	if first == nil {
		return done, nil
	}
	first.Status, first.Partly = 409, done > 0
	if unknown {
		first.Outcome = "unknown"
	}
	if len(ids) > 1 {
		first.Message = fmt.Sprintf("%s of %d %s; the first that was not: %s", plural(uint64(done), "job"), len(ids), v.done, first.Message)
	}
	return done, first
}
