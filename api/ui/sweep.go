package ui

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"tarry/client"
	"tarry/job"
)

// sweepTime bounds how long one request changes jobs by several calls.
const sweepTime = 8 * time.Second

// sweep is a change of all jobs of a topic in a state.
type sweep struct {
	Path   string // of the page with the action
	Verb   string // "Delete"
	Danger bool   // it cannot be undone
	call   string // of the API, below the topic
	reply  string // the field of the reply with the number of jobs, which is what was done
	text   string // what it means for those jobs
	states []string
}

var (
	kickAll = sweep{
		Path: Root + "topic/kick", Verb: "Kick", call: "kick", reply: "kicked", states: []string{"dead"},
		text: "They become ready at once, with all their attempts.",
	}
	purge = sweep{
		Path: Root + "topic/purge", Verb: "Delete", Danger: true, call: "purge", reply: "deleted", states: []string{"dead", "delayed", "ready"},
		text: "They are gone for good.",
	}
	releaseAll = sweep{
		Path: Root + "topic/release", Verb: "Release", Danger: true, call: "release", reply: "released", states: []string{"reserved"},
		text: "Their consumers lose them, and other consumers get them at once. Jobs whose consumers are still at work are done twice.",
	}
	moveAll = sweep{
		Path: Root + "topic/move", Verb: "Move", call: "move", reply: "moved", states: []string{"dead", "delayed", "ready", "reserved"},
		text: "They keep their state and their reservations.",
	}
	sweeps = []*sweep{&kickAll, &purge, &releaseAll, &moveAll}
)

// allOf is a button for a sweep.
type allOf struct {
	*sweep
	Label string // after the verb
	To    bool   // it needs the name of a topic
}

// sweepsOf returns the sweeps of the jobs of a topic in a state, if there are any, or of those
// that match a filter.
func sweepsOf(t *client.Topic, state string, filtered bool) (list []allOf) {
	n := countOf(t, state)
	label := "all " + number(n)
	if filtered {
		label = "all that match"
	}
	for _, s := range sweeps {
		if n > 0 && slices.Contains(s.states, state) {
			list = append(list, allOf{s, label, s == &moveAll})
		}
	}
	return list
}

// countOf returns how many jobs of a topic are in a state.
func countOf(t *client.Topic, state string) uint64 {
	switch state {
	case "delayed":
		return t.Delayed
	case "ready":
		return t.Ready
	case "reserved":
		return t.Reserved
	case "dead":
		return t.Dead
	}
	return 0
}

// sweepTopic changes all jobs of a topic in a state.
func sweepTopic(s *sweep) func(*request) (*outcome, error) {
	return func(q *request) (*outcome, error) {
		topic, err := q.required("topic")
		if err != nil {
			return nil, err
		}
		state, filter := q.value("state"), q.filter()
		in := map[string]any{"all": true}
		if selected, err := filter.body(); err != nil {
			return nil, err
		} else if selected != nil {
			in["filter"] = selected
		}
		switch s {
		case &purge:
			in["state"] = state
		case &moveAll:
			to, err := q.required("to")
			if err != nil {
				return nil, err
			}
			in["to"], in["states"] = to, []string{state}
		}
		if !q.confirmed() {
			c, err := q.confirmSweep(s, topic, state, filter)
			return &outcome{confirm: c}, err
		}
		flash, err := q.sweepConfirmed("/v1/topics/"+segment(topic)+"/"+s.call, s.reply, in)
		if err != nil {
			return nil, err
		}
		return &outcome{to: q.back(address(Root+"topic", "topic", topic)), flash: flash}, nil
	}
}

// confirmSweep asks before a sweep, with the number of jobs.
func (q *request) confirmSweep(s *sweep, topic, state string, f jobFilter) (*confirm, error) {
	c := &confirm{Text: s.text, Danger: s.Danger, Items: []string{"topic " + topic}}
	jobs := ""
	if f.Any() {
		n, more, err := q.count(topic, state, f)
		if err != nil {
			return nil, err
		}
		jobs = exact(n) + " " + state + " jobs that match"
		if more {
			jobs = "at least " + jobs
		} else {
			q.limitTo(n)
		}
		for pair := range slices.Chunk(f.pairs(), 2) {
			if pair[1] != "" {
				c.Items = append(c.Items, pair[0]+" "+pair[1])
			}
		}
	} else {
		t, err := q.topic(topic)
		if err != nil {
			return nil, err
		}
		n := countOf(t, state)
		jobs = plural(n, state+" job")
		q.limitTo(n)
	}
	if to := q.value("to"); s == &moveAll {
		c.Items = append(c.Items, "to topic "+to)
	}
	c.Title, c.Verb = fmt.Sprintf("%s %s?", s.Verb, jobs), s.Verb+" them"
	return c, nil
}

// confirmedJobs is the field with the number of jobs that a confirmation named: no more are
// changed, however many there are by then. It is missing if they could not be counted.
const confirmedJobs = "jobs"

// limitTo makes n the most that the form of a confirmation changes.
func (q *request) limitTo(n uint64) { q.r.PostForm.Set(confirmedJobs, strconv.FormatUint(n, 10)) }

// sweepConfirmed makes calls of a sweep until as many jobs as were confirmed are done, there
// are no others, or it took too long. It returns what was done, for a person.
func (q *request) sweepConfirmed(path, reply string, in map[string]any) (flash string, err error) {
	most, limited := uint64(math.MaxUint64), q.r.PostForm.Has(confirmedJobs)
	if limited {
		if most, err = strconv.ParseUint(q.value(confirmedJobs), 10, 64); err != nil {
			return "", invalid(confirmedJobs, "jobs must be the number that was confirmed")
		}
	}
	var jobs, skipped uint64
	var more bool
	var reason any // why the first job was skipped
	for end := q.now().Add(sweepTime); jobs < most; {
		if limited {
			delete(in, "all")
			in["max"] = min(most-jobs, job.MaxKick)
		}
		out := map[string]any{}
		if f := q.api.call(q.r.Context(), http.MethodPost, path, in, &out); f != nil {
			if jobs > 0 {
				f = f.after(plural(jobs, "job") + " " + reply)
			}
			return "", f
		}
		n, _ := out[reply].(float64)
		jobs += uint64(n)
		if n, _ = out["skipped"].(float64); n > 0 && skipped == 0 {
			reason = out["reason"]
		}
		skipped += uint64(n)
		more = out["more"] == true
		if !more || !limited || q.now().After(end) {
			break
		}
		if next, ok := out["next"]; ok { // behind those that were skipped
			in["cursor"] = next
		}
	}
	flash = done(jobs, reply, more)
	if skipped > 0 {
		flash += fmt.Sprintf(" %s stayed: %v.", plural(skipped, "other job"), reason)
	}
	return flash, nil
}
