package api

import (
	"bytes"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tarry/job"
	"tarry/job/jobpb"
)

// commandRequest is a command of the protocol on POST /. Names of members may
// be in any case. A client that sends one structure for all commands may leave
// members that the command does not use in it; they have no effect.
type commandRequest struct {
	Command opt[string] `json:"command"`
	addRequest
	Token   opt[string]  `json:"token"`
	Timeout opt[float64] `json:"timeout"`
	Count   opt[int64]   `json:"count"`
}

// lenient is how commands are read: names in any case, numbers as text and text that
// is a whole number, for its clients are written in PHP and send such types.
var lenient = json.JoinOptions(json.MatchCaseInsensitiveNames(true), json.WithUnmarshalers(json.JoinUnmarshalers(
	json.UnmarshalFromFunc(numberOrText[float64]), json.UnmarshalFromFunc(numberOrText[int64]), json.UnmarshalFromFunc(textOrNumber))))

// numberOrText reads a number, also in quotes.
func numberOrText[T float64 | int64](dec *jsontext.Decoder, o *opt[T]) error {
	if dec.PeekKind() != '"' {
		return o.UnmarshalJSONFrom(dec)
	}
	quoted, err := dec.ReadValue()
	if err != nil {
		return err
	}
	text, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil || json.Unmarshal(text, &o.v) != nil {
		return &json.SemanticError{JSONKind: '"', GoType: reflect.TypeFor[T]()}
	}
	o.set = true
	return nil
}

// textOrNumber reads text, also a whole number without quotes.
func textOrNumber(dec *jsontext.Decoder, o *opt[string]) error {
	if dec.PeekKind() != '0' {
		return o.UnmarshalJSONFrom(dec)
	}
	number, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if bytes.ContainsAny(number, ".eE") {
		return &json.SemanticError{JSONKind: '0', JSONValue: number, GoType: reflect.TypeFor[string]()}
	}
	o.set, o.v = true, string(number)
	return nil
}

func (s *server) command(x *exchange) error {
	var q commandRequest
	err := x.decode(s.maxJobRequest(), &q, lenient)
	x.commandID = q.ID.v
	if err != nil {
		return err
	}
	// Such clients also send "" for an id that they do not give.
	q.ID.set = q.ID.v != ""
	q.Token.set = q.Token.v != ""
	switch strings.ToLower(q.Command.v) {
	case "add":
		return s.commandAdd(x, &q)
	case "pop":
		return s.commandPop(x, &q)
	case "finish", "delete":
		return s.commandEnd(x, &q)
	case "":
		return job.Invalid("command", "is missing; it takes add, pop, finish or delete")
	default:
		return job.Invalid("command", "is %.40q; it takes add, pop, finish or delete", q.Command.v)
	}
}

func (s *server) commandAdd(x *exchange, q *commandRequest) error {
	op, err := q.op(s.MaxBodyBytes, time.Now())
	if err != nil {
		return err
	}
	r, err := s.doOne(x, op)
	if err != nil {
		return err
	}
	x.json.commandDone(r.Id)
	return nil
}

// commandPop reserves. Without count the one job is the answer itself; with
// count the jobs are listed as well. No job is a success with an empty id.
func (s *server) commandPop(x *exchange, q *commandRequest) error {
	if err := job.CheckTopic("topic", q.Topic.v); err != nil {
		return err
	}
	count, err := within("count", q.Count.or(1), job.MaxReserve)
	if err != nil {
		return err
	}
	wait, err := job.Millis("timeout", q.Timeout.v, job.MaxWait)
	if err != nil {
		return err
	}
	r := &jobpb.Reserve{Topics: []string{q.Topic.v}, Max: count, MaxBytes: job.MaxReserveBytes}
	return s.handOut(x, r, time.Duration(wait)*time.Millisecond, func(jobs []*jobpb.Reserved) {
		x.json.success()
		x.json.text("error", "")
		if len(jobs) > 0 {
			x.json.popped(jobs[0])
		} else {
			x.json.text("id", "")
			x.json.null("value")
		}
		if q.Count.set {
			x.json.openList("jobs")
			for _, j := range jobs {
				x.json.open()
				x.json.popped(j)
				x.json.shut()
			}
			x.json.shutList()
		}
		x.json.shut()
	})
}

// popped adds the members by which a job is handed out.
func (w *writer) popped(j *jobpb.Reserved) {
	w.text("id", j.Id)
	w.body("value", j.BodyKind, j.Body)
	w.text("token", tokenOf(j))
}

// commandEnd finishes or deletes a job.
func (s *server) commandEnd(x *exchange, q *commandRequest) error {
	if err := job.CheckRefID("id", q.ID.v); err != nil {
		return err
	}
	ref := &jobpb.Ref{Id: q.ID.v}
	if q.Token.set {
		if err := fence(ref, q.Token.v); err != nil {
			return err
		}
	}
	op := &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: ref}}}
	if strings.EqualFold(q.Command.v, "delete") {
		op = &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: ref}}}
	}
	if _, err := s.doOne(x, op); err != nil {
		return err
	}
	x.json.commandDone(q.ID.v)
	return nil
}

// commandDone writes the answer of a command that has no value.
func (w *writer) commandDone(id string) {
	w.success()
	w.text("error", "")
	w.text("id", id)
	w.null("value")
	w.shut()
}

// commandFailure writes the answer of a command that failed: the members of the
// protocol, and those of every other failure.
func (w *writer) commandFailure(e *job.Error, id string) {
	w.open()
	w.failure(e)
	w.text("id", brief(id))
	w.null("value")
	w.shut()
}
