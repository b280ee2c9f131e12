package ui

import (
	"fmt"
	"net/url"
	"strconv"

	"tarry/client"
)

const (
	deadPath       = Root + "dead"
	deadTopicsPath = deadPath + "/topics"

	// deadShown is how many groups of dead jobs a page shows, or topics of one.
	deadShown = 200
	// deadCounted is how many topics a confirmation looks through for one.
	deadCounted = 1000
)

// deadView is the data of the page of dead jobs.
type deadView struct{ client.DeadReasons }

// deadTopicsView is the data of the page of the dead jobs with one reason.
type deadTopicsView struct{ client.DeadTopics }

// showDead groups the dead jobs of all topics by reason, the largest group first.
func showDead(q *request) (any, error) {
	v := &deadView{}
	return v, q.read("/v1/dead", url.Values{"max": {strconv.Itoa(deadShown)}}, &v.DeadReasons)
}

// showDeadTopics lists the topics that most dead jobs with a reason are in.
func showDeadTopics(q *request) (any, error) {
	topics, err := q.deadTopics(q.value("reason"), deadShown)
	return &deadTopicsView{topics}, err
}

func (q *request) deadTopics(reason string, most int) (topics client.DeadTopics, err error) {
	err = q.read("/v1/dead/topics", url.Values{"exact_reason": {reason}, "max": {strconv.Itoa(most)}}, &topics)
	return topics, err
}

// deadKey names a group in a form; an empty topic is all of them.
func deadKey(topic, reason string) string {
	return url.Values{"topic": {topic}, "reason": {reason}}.Encode()
}

// deadGroup is the dead jobs that a form is about.
type deadGroup struct {
	Topic  string // empty: all
	Reason string
}

func (q *request) deadGroup() (g deadGroup, err error) {
	key, err := q.required("group")
	if err != nil {
		return g, err
	}
	group, err := url.ParseQuery(key)
	if err != nil || !group.Has("reason") {
		return g, invalid("group", "group is not one of this page")
	}
	return deadGroup{group.Get("topic"), group.Get("reason")}, nil
}

// path is that of a call of the API, which is kick or purge.
func (g *deadGroup) path(call string) string {
	if g.Topic == "" {
		return "/v1/dead/" + call
	}
	return "/v1/topics/" + segment(g.Topic) + "/" + call
}

// body selects the group in such a call.
func (g *deadGroup) body() map[string]any {
	if g.Topic == "" {
		return map[string]any{"all": true, "exact_reason": g.Reason}
	}
	return map[string]any{"all": true, "filter": map[string]any{"exact_reason": g.Reason}}
}

// confirmDead asks before a change of a group, with the number of its jobs.
func (q *request) confirmDead(g deadGroup, verb, text string, danger bool) (*outcome, error) {
	most := deadCounted
	if g.Topic == "" {
		most = 1
	}
	with, err := q.deadTopics(g.Reason, most)
	if err != nil {
		return nil, err
	}
	jobs, where, counted := with.Jobs, "in "+plural(with.Topics, "topic"), true
	if g.Topic != "" {
		jobs, where, counted = 0, "topic "+g.Topic, with.Topics <= uint64(len(with.Groups))
		for _, t := range with.Groups {
			if t.Topic == g.Topic {
				jobs, counted = t.Jobs, true
			}
		}
	}
	if counted {
		q.limitTo(jobs)
	}
	reason := "no reason"
	if g.Reason != "" {
		reason = "reason: " + g.Reason
	}
	return &outcome{confirm: &confirm{
		Title: fmt.Sprintf("%s %s?", verb, plural(jobs, "dead job")), Verb: verb + " them", Text: text, Danger: danger,
		Items: []string{reason, where},
	}}, nil
}

// kickDead makes a group ready again, at a rate if one is given.
func kickDead(q *request) (*outcome, error) {
	g, err := q.deadGroup()
	if err != nil {
		return nil, err
	}
	in, pace := g.body(), "at once"
	if rate, ok, err := q.number("rate", "jobs a second"); err != nil {
		return nil, err
	} else if ok {
		in["rate"], pace = rate, "one after the other, "+q.value("rate")+" a second"
	}
	if !q.confirmed() {
		return q.confirmDead(g, "Kick", "They become ready "+pace+", with all their attempts.", false)
	}
	flash, err := q.sweepConfirmed(g.path("kick"), "kicked", in)
	if err != nil {
		return nil, err
	}
	return &outcome{to: q.back(deadPath), flash: flash}, nil
}

// purgeDead deletes a group.
func purgeDead(q *request) (*outcome, error) {
	g, err := q.deadGroup()
	if err != nil {
		return nil, err
	}
	if !q.confirmed() {
		return q.confirmDead(g, "Delete", "They are gone for good.", true)
	}
	in := g.body()
	if g.Topic != "" {
		in["state"] = "dead"
	}
	flash, err := q.sweepConfirmed(g.path("purge"), "deleted", in)
	if err != nil {
		return nil, err
	}
	return &outcome{to: q.back(deadPath), flash: flash}, nil
}

// done says what a call has done that works in steps.
func done(n uint64, verb string, more bool) string {
	text := plural(n, "job") + " " + verb + "."
	if more {
		text += " There are more: repeat it."
	}
	return text
}
