package api

import (
	"strconv"

	"tarry/job"
	"tarry/job/jobpb"
)

// maxTopicsPage bounds one page of topics; it is the default as well.
const maxTopicsPage = 1000

func (s *server) topics(x *exchange) error {
	query := x.r.URL.Query()
	after := query.Get("after")
	if after != "" {
		if err := job.CheckTopic("after", after); err != nil {
			return err
		}
	}
	page := int64(maxTopicsPage)
	if v := query.Get("max"); v != "" {
		var err error
		if page, err = strconv.ParseInt(v, 10, 64); err != nil {
			return job.Errorf(job.CodeInvalid, "max is %.40q; it takes a whole number", v)
		}
		if _, err := within("max", page, maxTopicsPage); err != nil {
			return err
		}
	}
	stale, err := x.stale()
	if err != nil {
		return err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	list, err := s.Queue.Topics(ctx, after, int(page), stale)
	if err != nil {
		return err
	}
	x.json.open()
	x.json.boolean("success", true)
	x.json.openList("topics")
	for _, t := range list {
		x.json.open()
		x.json.topic(t)
		x.json.shut()
	}
	x.json.shutList()
	if int64(len(list)) == page {
		x.json.text("next", list[len(list)-1].Name)
	}
	x.json.shut()
	return nil
}

// topic adds the counts of a topic.
func (w *writer) topic(t *jobpb.Topic) {
	w.text("topic", t.Name)
	w.number("delayed", t.Delayed)
	w.number("ready", t.Ready)
	w.number("reserved", t.Reserved)
	w.number("dead", t.Dead)
	w.instant("oldest_due_at", t.OldestDueMs)
	w.instant("paused_until", t.PausedUntilMs)
	w.number("added", t.Added)
	w.number("finished", t.Finished)
	w.number("deleted", t.Deleted)
	w.number("timeouts", t.Timeouts)
	w.number("died", t.Died)
}

func (s *server) topic(x *exchange) error {
	name, err := x.pathTopic()
	if err != nil {
		return err
	}
	stale, err := x.stale()
	if err != nil {
		return err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	t, err := s.Queue.Topic(ctx, name, stale)
	if err != nil {
		return err
	}
	x.json.open()
	x.json.boolean("success", true)
	x.json.topic(t)
	x.json.shut()
	return nil
}

func (s *server) kickTopic(x *exchange) error {
	topic, err := x.pathTopic()
	if err != nil {
		return err
	}
	var q struct {
		Max opt[int64] `json:"max"`
	}
	if err := x.decode(maxSmallRequest, &q); err != nil {
		return err
	}
	if !q.Max.set {
		return job.Errorf(job.CodeInvalid, "max is missing; it takes 1 to %d", job.MaxKick)
	}
	limit, err := within("max", q.Max.v, job.MaxKick)
	if err != nil {
		return err
	}
	r, err := s.doOne(x, &jobpb.Op{Kind: &jobpb.Op_KickTopic{KickTopic: &jobpb.KickTopic{Topic: topic, Max: limit}}})
	if err != nil {
		return err
	}
	x.json.open()
	x.json.boolean("success", true)
	x.json.number("kicked", uint64(r.Count))
	x.json.shut()
	return nil
}
