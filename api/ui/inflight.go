package ui

import (
	"fmt"
	"maps"
	"slices"

	"tarry/client"
)

const inFlightPath = Root + "inflight"

// reservedShown is how many reserved jobs of a topic the page lists.
const reservedShown = 25

// inFlightView is the data of the page of reserved jobs.
type inFlightView struct {
	Reserved uint64 // in all topics
	List     *jobList
	Cut      []client.Topic // topics with more reserved jobs than are listed
}

// Consumers returns those that have a job of the list, and Topics whose jobs these are.
func (v *inFlightView) Consumers() []string {
	return v.distinct(func(j client.Job) string { return j.ReservedBy })
}

func (v *inFlightView) Topics() []string {
	return v.distinct(func(j client.Job) string { return j.Topic })
}

// distinct returns the texts that jobs of the list have, sorted, each once.
func (v *inFlightView) distinct(of func(client.Job) string) []string {
	texts := map[string]bool{}
	for _, j := range v.List.Jobs {
		if text := of(j); text != "" {
			texts[text] = true
		}
	}
	return slices.Sorted(maps.Keys(texts))
}

// columnSign is when a consumer last reserved or touched a reserved job: its last change.
var columnSign = column{Name: "Last sign", of: func(j client.Job) cell { return timeCell(j.ModifiedAt) }}

// showInFlight lists who has which jobs, by topic, the lease that ends first at the top.
func showInFlight(q *request) (any, error) {
	v := &inFlightView{List: &jobList{
		Caption: "Reserved jobs of all topics", Columns: []column{columnTopic, columnConsumer, columnSign, columnLease, columnAttempts}, Actions: actionsOn("reserved"),
		Empty: emptyState{Title: "No consumer has a job", Text: "Jobs are here from the reserve until the consumer finishes, releases or buries them, or their leases expire."},
	}}
	var totals client.Stats
	if err := q.read("/v1/stats", nil, &totals); err != nil {
		return nil, err
	}
	v.Reserved = totals.Reserved
	if totals.Reserved == 0 {
		return v, nil
	}
	topics, next, err := q.topicsWith(q.value("after"), func(t *client.Topic) uint64 { return t.Reserved })
	if err != nil {
		return nil, err
	}
	for _, t := range topics {
		jobs, err := q.firstJobs(t.Name, "reserved", reservedShown)
		if err != nil {
			return nil, err
		}
		v.List.Jobs = append(v.List.Jobs, jobs...)
		if t.Reserved > uint64(len(jobs)) && len(jobs) == reservedShown {
			v.Cut = append(v.Cut, t)
		}
	}
	if q.value("after") != "" {
		v.List.Pager.First = inFlightPath
	}
	if next != "" {
		v.List.Pager.Next = address(inFlightPath, "after", next)
	}
	return v, nil
}

// releaseConsumer gives back the jobs of one consumer of a topic, which is gone.
func releaseConsumer(q *request) (*outcome, error) {
	topic, err := q.required("topic")
	if err != nil {
		return nil, err
	}
	consumer, err := q.required("consumer")
	if err != nil {
		return nil, err
	}
	if !q.confirmed() {
		return &outcome{confirm: &confirm{
			Title: "Give back the jobs of " + consumer + " in " + topic + "?", Verb: "Give back", Danger: true,
			Text: "They are ready again at once, and count one attempt. If the consumer still works on them, they are done twice.",
		}}, nil
	}
	var out struct {
		Released uint64 `json:"released"`
	}
	in := map[string]any{"consumer": consumer, "all": true, "reason": consumer + " is gone"}
	if err := q.do("/v1/topics/"+segment(topic)+"/release", in, &out); err != nil {
		return nil, err
	}
	return &outcome{to: q.back(inFlightPath), flash: fmt.Sprintf("%s given back.", plural(out.Released, "job"))}, nil
}
