package api

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"net/url"
	"time"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

// defaultList is the default size of a page of jobs.
const defaultList = 100

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
	next, err := cursorOf(q, page.Next)
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
		state, ok := wire.StatesByName[v]
		if !ok {
			return nil, job.Invalid("state", "is %.40q; it takes delayed, ready, reserved, dead, finished or deleted", v)
		}
		q.State = state
	}
	most := wire.Opt[int64]{V: defaultList}
	err := wire.NumberIn(query, "max", &most)
	if err != nil {
		return nil, err
	}
	if q.Max, err = wire.Within("max", most.V, job.MaxList); err != nil {
		return nil, err
	}
	if q.Body, err = wire.WithBodies(query, false); err != nil {
		return nil, err
	}
	filter := wire.QueryFilter(query)
	if q.Filter, err = filter.Proto(now); err != nil {
		return nil, err
	}
	if topic == "" && q.Filter.GetIdPrefix() == "" {
		if len(q.Filter.GetHeaders()) == 0 {
			return nil, job.Invalid("id_prefix", "or header.NAME is missing; for the jobs of a topic see GET /v1/topics/{topic}/jobs")
		}
		q.ByHeader = true
	}
	if v := query.Get("cursor"); v != "" {
		if q.After, err = parseCursor(q, v); err != nil {
			return nil, err
		}
	}
	return q, job.CheckJobQuery(q)
}

// A cursor is a version, what its query asked for, and where the page ended. With another
// query it would silently skip jobs.
const (
	cursorVersion = 2
	cursorHead    = 1 + 4 // bytes before the mark
)

// queryHash is a checksum of what a query asks for, however it is split in pages.
func queryHash(q *jobpb.JobQuery) (uint32, error) {
	of := &jobpb.JobQuery{Topic: q.Topic, State: q.State, Filter: q.Filter, ByHeader: q.ByHeader}
	b, err := of.MarshalVT()
	return crc32.ChecksumIEEE(b), err
}

// cursorOf encodes where a page of a query ended, as text that a client sends back; empty for
// the last page.
func cursorOf(q *jobpb.JobQuery, m *jobpb.JobMark) (string, error) {
	if m == nil {
		return "", nil
	}
	hash, err := queryHash(q)
	if err != nil {
		return "", err
	}
	mark, err := m.MarshalVT()
	head := binary.BigEndian.AppendUint32([]byte{cursorVersion}, hash)
	return base64.RawURLEncoding.EncodeToString(append(head, mark...)), err
}

// maxCursor bounds the text of a cursor: the longest id, and some more.
const maxCursor = 400

// parseCursor reads a cursor of the query.
func parseCursor(q *jobpb.JobQuery, text string) (*jobpb.JobMark, error) {
	bad := job.Invalid("cursor", "is not one that this listing gave; begin without one")
	if len(text) > maxCursor {
		return nil, bad
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) < cursorHead || b[0] != cursorVersion {
		return nil, bad
	}
	m := new(jobpb.JobMark)
	if err := m.UnmarshalVTUnsafe(b[cursorHead:]); err != nil {
		return nil, bad
	}
	hash, err := queryHash(q)
	if err == nil && binary.BigEndian.Uint32(b[1:]) != hash {
		err = job.Invalid("cursor", "belongs to another query; send the topic, state and filters of the page before, or begin without one")
	}
	return m, err
}
