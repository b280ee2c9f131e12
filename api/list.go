package api

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"time"

	"tarry/job"
	"tarry/job/jobpb"
)

// defaultList is the default size of a page of jobs.
const defaultList = 100

// listQuery are the parameters of the listings of jobs.
var listQuery = []string{
	"state", "due_from", "due_to", "died_from", "died_to", "id_prefix", "reason", headerParameter,
	"cursor", "max", "body", "consistency",
}

// listTopic handles GET /v1/topics/{topic}/jobs.
func (s *server) listTopic(x *call) error {
	topic, err := x.pathTopic()
	if err != nil {
		return err
	}
	q, err := jobQueryOf(x.r.URL.Query(), topic, time.Now())
	if err != nil {
		return err
	}
	return s.list(x, q)
}

// listJobs handles GET /v1/jobs: over all topics, by id or by header.
func (s *server) listJobs(x *call) error {
	q, err := jobQueryOf(x.r.URL.Query(), "", time.Now())
	if err != nil {
		return err
	}
	return s.list(x, q)
}

func (s *server) list(x *call, q *jobpb.JobQuery) error {
	stale, err := x.stale()
	if err != nil {
		return err
	}
	ctx, cancel := x.timeout(s.Timeout)
	defer cancel()
	page, err := s.reads.Jobs(ctx, q, stale)
	if err != nil {
		return err
	}
	var room int64
	for _, j := range page.Jobs {
		room += jobRoom(j)
	}
	if err := x.claim(room); err != nil {
		return err
	}
	next, err := cursorOf(page.Next)
	if err != nil {
		return err
	}
	x.json.success()
	x.json.booleanIfTrue("incomplete", page.Incomplete)
	writePage(x, "jobs", page.Jobs, func(j *jobpb.Job) {
		x.json.job(j)
		if q.Body {
			x.json.body("body", j.BodyKind, j.Body)
		}
	}, next)
	return nil
}

// jobQueryOf parses the query of a listing: of the jobs of a topic, or, when topic is
// empty, of those that are found by id or by header.
func jobQueryOf(query url.Values, topic string, now time.Time) (*jobpb.JobQuery, error) {
	q := &jobpb.JobQuery{Topic: cmp.Or(topic, query.Get("topic"))}
	if v := query.Get("state"); v != "" {
		state, ok := statesByName[v]
		if !ok {
			return nil, job.Invalid("state", "is %.40q; it takes delayed, ready, reserved, dead, finished or deleted", v)
		}
		q.State = state
	}
	most := opt[int64]{v: defaultList}
	err := numberIn(query, "max", &most)
	if err != nil {
		return nil, err
	}
	if q.Max, err = within("max", most.v, job.MaxList); err != nil {
		return nil, err
	}
	switch v := query.Get("body"); v {
	case "", "false":
	case "true":
		q.Body = true
	default:
		return nil, job.Invalid("body", "is %.40q; it takes true or false", v)
	}
	filter := queryFilter(query)
	if q.Filter, err = filter.proto(now); err != nil {
		return nil, err
	}
	if topic == "" && q.Filter.GetIdPrefix() == "" {
		if len(q.Filter.GetHeaders()) == 0 {
			return nil, job.Invalid("id_prefix", "or header.NAME is missing; for the jobs of a topic see GET /v1/topics/{topic}/jobs")
		}
		q.ByHeader = true
	}
	if v := query.Get("cursor"); v != "" {
		if q.After, err = parseCursor(v); err != nil {
			return nil, err
		}
	}
	return q, job.CheckJobQuery(q)
}

// cursorVersion begins every cursor.
const cursorVersion = 1

// cursorOf encodes where a page ended, as text that a client sends back; empty for the
// last page.
func cursorOf(m *jobpb.JobMark) (string, error) {
	if m == nil {
		return "", nil
	}
	b, err := m.MarshalVT()
	return base64.RawURLEncoding.EncodeToString(append([]byte{cursorVersion}, b...)), err
}

// maxCursor bounds the text of a cursor: the longest id, and some more.
const maxCursor = 400

func parseCursor(text string) (*jobpb.JobMark, error) {
	bad := job.Invalid("cursor", "is not one that this listing gave; begin without one")
	if len(text) > maxCursor {
		return nil, bad
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) < 1 || b[0] != cursorVersion {
		return nil, bad
	}
	m := new(jobpb.JobMark)
	if err := m.UnmarshalVTUnsafe(b[1:]); err != nil {
		return nil, bad
	}
	return m, nil
}
