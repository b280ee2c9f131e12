package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The longest replies of a node, in bytes, so that something else cannot fill the client's
// memory. They are longest when bodies are control characters, of which JSON makes six bytes
// each.
const (
	maxReply      = 8 << 20   // what has no body of a job
	maxJobReply   = 32 << 20  // a job with a body of 4 MiB; 1000 results, settings, schedules or jobs without bodies
	maxPageReply  = 64 << 20  // a page of jobs: less than 8 MiB of bodies, headers and reasons
	maxJobsReply  = 160 << 20 // 1000 reserved jobs: 16 MiB of bodies, 8 MiB of headers
	maxErrorReply = 64 << 10
	// maxItems bounds the jobs, results, topics or schedules of a reply.
	maxItems = 1000
)

// maxReserveReply is the longest reply to a reserve of so many jobs.
func maxReserveReply(jobs int) int64 {
	return min(int64(jobs), maxJobsReply/maxJobReply) * maxJobReply
}

// completer is a reply of which a part may be absent: then it is no reply of Tarry.
type completer interface{ complete() bool }

// readReply decodes the response of a node into out.
func readReply(ctx context.Context, node string, answer *http.Response, most int64, out any) *Error {
	in := &bounded{from: answer.Body, left: most}
	if answer.StatusCode >= 300 {
		in.left = maxErrorReply
		data, err := io.ReadAll(in)
		if err != nil && in.failed != nil {
			return connectionError(ctx, node, in.failed, true)
		}
		return answerError(answer, data)
	}
	reflect.ValueOf(out).Elem().SetZero() // an earlier attempt may have failed halfway
	err := json.UnmarshalRead(in, out)
	switch c, _ := out.(completer); {
	case in.failed != nil:
		return connectionError(ctx, node, in.failed, true)
	case errors.Is(err, errTooLong):
		return errorf(CodeUnknown, "%s is no node of Tarry: %w", node, fmt.Errorf("its answer is longer than %d bytes", most))
	case err != nil:
		return &Error{Code: CodeUnknown, Unknown: true, cause: err, Message: fmt.Sprintf("the answer of %s is not understood: no node of Tarry answered, or one of another release", node)}
	case c != nil && !c.complete():
		return errorf(CodeUnknown, "the answer of %s is not understood: %w", node, errIncomplete)
	}
	return nil
}

var errIncomplete = errors.New("it does not say what was done")

var errTooLong = errors.New("it is too long")

// bounded reads up to left bytes, and fails if there are more.
type bounded struct {
	from   io.Reader
	left   int64
	failed error // of the connection
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLong
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return n, errTooLong
	}
	if err != nil && err != io.EOF {
		b.failed = err
	}
	return n, err
}

// items is a list in a reply. Three bytes of JSON can become an item of hundreds.
type items[T any] []T

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (l *items[T]) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	if in.PeekKind() != '[' {
		return json.UnmarshalDecode(in, (*[]T)(l))
	}
	if _, err := in.ReadToken(); err != nil {
		return err
	}
	*l = items[T]{}
	for in.PeekKind() != ']' {
		if len(*l) == maxItems {
			return fmt.Errorf("it has more than %d items", maxItems)
		}
		*l = append(*l, *new(T))
		if err := json.UnmarshalDecode(in, &(*l)[len(*l)-1]); err != nil {
			return err
		}
	}
	_, err := in.ReadToken()
	return err
}

// complete reports whether a reply has what each reply to the call has. One without it is of
// something else than the call, whatever its status.

func (a *Added) complete() bool         { return a.ID != "" && a.Seq != 0 && a.State != "" }
func (c *Changed) complete() bool       { return c.ID != "" && c.State != "" }
func (j *Job) complete() bool           { return j.ID != "" && j.Topic != "" && j.State != "" }
func (h *History) complete() bool       { return h.ID != "" && h.Events != nil }
func (e *Explanation) complete() bool   { return e.ID != "" && e.Causes != nil }
func (t *Topic) complete() bool         { return t.Name != "" }
func (t *TopicSettings) complete() bool { return t.Topic != "" }
func (p *Pause) complete() bool         { return p.Topic != "" }
func (s *ScheduleInfo) complete() bool  { return s.Name != "" && s.Spec != "" }
func (s *SchedulePut) complete() bool   { return s.Name != "" }
func (r *runs[T]) complete() bool       { return r.Runs != nil }
func (r *Rates) complete() bool         { return r.Added != nil }
func (f *Forecast) complete() bool      { return f.Jobs != nil }
func (d *DueTopics) complete() bool     { return d.Topics != nil }
func (h *Health) complete() bool        { return h.Reasons != nil }
func (c *Clocks) complete() bool        { return c.Clocks != nil }
func (v *Verification) complete() bool  { return v.Digests != nil }

// done is the response of a call that gives nothing.
type done struct {
	Success bool `json:"success"`
}

func (d *done) complete() bool { return d.Success }

// scheduleChange names the schedule that was changed.
type scheduleChange struct {
	Name string `json:"schedule"`
}

func (s *scheduleChange) complete() bool { return s.Name != "" }

// statsReply has the number of topics apart, to tell 0 from none.
type statsReply struct {
	Topics *uint64 `json:"topics"`
	Stats
}

func (s *statsReply) complete() bool { return s.Topics != nil }

// complete reports whether each item has what it should, or is an error.
func (r *results[T]) complete() bool {
	for i := range r.Results {
		if !r.Results[i].complete() {
			return false
		}
	}
	return r.Results != nil
}

func (r *result[T]) complete() bool {
	if !r.Success {
		return r.Code != ""
	}
	return any(&r.Answer).(completer).complete()
}

type transfer struct {
	Moved *bool `json:"moved"`
}

func (t *transfer) complete() bool { return t.Moved != nil }

type memberList struct {
	Members   []Member `json:"members"`
	Admission string   `json:"admission"`
}

func (l *memberList) complete() bool { return l.Members != nil }

type admission struct {
	Mode string `json:"mode"`
}

func (a *admission) complete() bool { return a.Mode != "" }

type invitationList struct {
	Invitations []Invitation `json:"invitations"`
}

func (l *invitationList) complete() bool { return l.Invitations != nil }

func (i *Invited) complete() bool { return i.ID != "" && i.Invitation != "" }

type removedList struct {
	Removed []RemovedNode `json:"removed"`
}

func (l *removedList) complete() bool { return l.Removed != nil }

type jobPage struct {
	Jobs       items[Job] `json:"jobs"`
	Next       string     `json:"next"`
	Incomplete bool       `json:"incomplete"`
}

func (p *jobPage) complete() bool { return p.Jobs != nil && all(p.Jobs) }

type topicPage struct {
	Topics items[Topic] `json:"topics"`
	Next   string       `json:"next"`
}

func (p *topicPage) complete() bool { return p.Topics != nil && all(p.Topics) }

type settingsPage struct {
	Topics items[TopicSettings] `json:"topics"`
	Next   string               `json:"next"`
}

func (p *settingsPage) complete() bool { return p.Topics != nil && all(p.Topics) }

type schedulePage struct {
	Schedules items[ScheduleInfo] `json:"schedules"`
	Next      string              `json:"next"`
}

func (p *schedulePage) complete() bool { return p.Schedules != nil && all(p.Schedules) }

func (r *Reserved) complete() bool { return r.ID != "" && r.Token != "" }

// foundReply has one of the three counts.
type foundReply struct {
	Deleted    *int   `json:"deleted"`
	Updated    *int   `json:"updated"`
	Kicked     *int   `json:"kicked"`
	Skipped    int    `json:"skipped"`
	Reason     string `json:"reason"`
	Incomplete bool   `json:"incomplete"`
	More       bool   `json:"more"`
	Next       string `json:"next"`
}

func (r *foundReply) complete() bool { return r.Deleted != nil || r.Updated != nil || r.Kicked != nil }
func (r *foundReply) count() int     { return sum(r.Deleted, r.Updated, r.Kicked) }

// sweepReply has one of the four counts.
type sweepReply struct {
	Kicked   *int `json:"kicked"`
	Deleted  *int `json:"deleted"`
	Moved    *int `json:"moved"`
	Released *int `json:"released"`
	More     bool `json:"more"`
}

func (r *sweepReply) complete() bool {
	return r.Kicked != nil || r.Deleted != nil || r.Moved != nil || r.Released != nil
}
func (r *sweepReply) count() int { return sum(r.Kicked, r.Deleted, r.Moved, r.Released) }

// all reports whether all elements of a list are complete.
func all[T any, P interface {
	*T
	completer
}](list []T) bool {
	for i := range list {
		if !P(&list[i]).complete() {
			return false
		}
	}
	return true
}

func sum(counts ...*int) int {
	n := 0
	for _, c := range counts {
		if c != nil {
			n += *c
		}
	}
	return n
}
