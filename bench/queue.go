package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"tarry/bench/localcluster"
)

// What follows is for programs that measure Tarry beside other systems: one topic or
// tube, over one connection of this package. A queue belongs to one goroutine, its
// calls block for callLimit at most, and its context ends them.

// jobsLease is how long a reserved job is held, in seconds.
const jobsLease = "60"

// HTTPQueue is one topic of a node, over HTTP.
type HTTPQueue struct {
	*conn
	topic      string
	id, token  string // of the job reserved last
	out, other []byte
}

// NewHTTPQueue connects with the first call.
func NewHTTPQueue(ctx context.Context, addr, topic string) *HTTPQueue {
	return &HTTPQueue{conn: newConn(ctx, addr, localcluster.Access{}), topic: topic}
}

// Close drops the connection; the next call dials anew.
func (q *HTTPQueue) Close() { q.close() }

func (q *HTTPQueue) appendJob(buf []byte, body string, due time.Time) []byte {
	buf = append(append(append(buf, `{"topic":"`...), q.topic...), `","ttr":`+jobsLease...)
	if !due.IsZero() {
		buf = strconv.AppendInt(append(buf, `,"due_at":`...), due.UnixMilli(), 10)
	}
	return append(append(append(buf, `,"body":"`...), body...), `"}`...)
}

// Put adds a job, which is due now without a due time. The body must be text that needs
// no escapes in JSON.
func (q *HTTPQueue) Put(body string, due time.Time) error {
	q.out = q.appendJob(q.out[:0], body, due)
	_, err := q.call("POST", "/v1/jobs", q.out, callLimit)
	return err
}

// PutMany adds jobs in one request.
func (q *HTTPQueue) PutMany(bodies []string, due func(i int) time.Time) error {
	q.out = append(q.out[:0], `{"jobs":[`...)
	for i, body := range bodies {
		if i > 0 {
			q.out = append(q.out, ',')
		}
		q.out = q.appendJob(q.out, body, due(i))
	}
	_, err := q.call("POST", "/v1/jobs/batch", append(q.out, "]}"...), callLimit)
	return err
}

// Reserve waits a second at most; the body is "" when no job came.
func (q *HTTPQueue) Reserve() (body string, err error) { return q.reserve("") }

func (q *HTTPQueue) reserve(finish string) (string, error) {
	q.other = fmt.Appendf(q.other[:0], `{"topics":["%s"],"max":1,"wait":1%s}`, q.topic, finish)
	answer, err := q.call("POST", "/v1/reserve", q.other, callLimit)
	if err != nil {
		return "", err
	}
	q.id, q.token = text(answer, "id"), text(answer, "token")
	return text(answer, "body"), nil
}

// Delete finishes the job reserved last.
func (q *HTTPQueue) Delete() error {
	q.out = append(append(append(q.out[:0], `{"token":"`...), q.token...), `"}`...)
	_, err := q.call("POST", "/v1/jobs/"+q.id+"/finish", q.out, callLimit)
	return err
}

// DeleteAndReserve finishes the job reserved last and reserves the next in one request.
func (q *HTTPQueue) DeleteAndReserve() (body string, err error) {
	return q.reserve(`,"finish":[{"token":"` + q.token + `"}]`)
}

// TubeQueue is one tube of a node, or of a real beanstalkd.
type TubeQueue struct {
	t   *tubeConn
	out []byte
}

// NewTubeQueue connects with the first call.
func NewTubeQueue(ctx context.Context, addr, tube string) *TubeQueue {
	return &TubeQueue{t: &tubeConn{conn: newConn(ctx, addr, localcluster.Access{}), tubes: []string{tube}}}
}

// Close drops the connection; the next call dials anew.
func (q *TubeQueue) Close() { q.t.close() }

func (q *TubeQueue) appendJob(body string, due time.Time) {
	// The protocol has whole seconds. Rounded to the nearest, because due was made a
	// moment ago from a delay of whole seconds.
	delay := max(0, int(time.Until(due).Round(time.Second)/time.Second))
	q.out = append(q.out, "put 1024 "...)
	q.out = strconv.AppendInt(q.out, int64(delay), 10)
	q.out = append(q.out, " "+jobsLease+" "...)
	q.out = strconv.AppendInt(q.out, int64(len(body)), 10)
	q.out = append(append(append(q.out, "\r\n"...), body...), "\r\n"...)
}

// Put adds a job. It is due after whole seconds from now, the nearest to due; a due
// time in the past, as the zero one, is now.
func (q *TubeQueue) Put(body string, due time.Time) error {
	q.out = q.out[:0]
	q.appendJob(body, due)
	return q.t.call(q.out, 1, inserted)
}

// PutMany adds jobs in one write and then reads the replies.
func (q *TubeQueue) PutMany(bodies []string, due func(i int) time.Time) error {
	q.out = q.out[:0]
	for i, body := range bodies {
		q.appendJob(body, due(i))
	}
	return q.t.call(q.out, len(bodies), inserted)
}

// Reserve waits a second at most; the body is "" when no job came.
func (q *TubeQueue) Reserve() (body string, err error) {
	data, ok, err := q.t.reserve(1)
	if err != nil || !ok {
		return "", err
	}
	return string(data), nil
}

// Delete deletes the job reserved last.
func (q *TubeQueue) Delete() error { return q.t.delete() }
