package api

import (
	"bytes"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

// lenient are the options to decode commands: names in any case, quoted numbers, and
// whole numbers as text, because the clients are written in PHP and send such types.
var lenient = json.JoinOptions(json.MatchCaseInsensitiveNames(true), json.WithUnmarshalers(json.JoinUnmarshalers(
	json.UnmarshalFromFunc(numberOrText[float64]), json.UnmarshalFromFunc(numberOrText[int64]), json.UnmarshalFromFunc(textOrNumber))))

// numberOrText reads a number, also in quotes.
func numberOrText[T float64 | int64](dec *jsontext.Decoder, o *wire.Opt[T]) error {
	if dec.PeekKind() != '"' {
		return o.UnmarshalJSONFrom(dec)
	}
	quoted, err := dec.ReadValue()
	if err != nil {
		return err
	}
	text, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil || json.Unmarshal(text, &o.V) != nil {
		return &json.SemanticError{JSONKind: '"', GoType: reflect.TypeFor[T]()}
	}
	o.Set = true
	return nil
}

// textOrNumber reads text, also a whole number without quotes.
func textOrNumber(dec *jsontext.Decoder, o *wire.Opt[string]) error {
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
	o.Set, o.V = true, string(number)
	return nil
}

func (s *server) command(x *call) error {
	var q wire.CommandRequest
	err := x.decode(s.maxJobRequest(), &q, lenient)
	x.commandID = q.ID.V
	if err != nil {
		return err
	}
	// Such clients also send "" for an id that they do not give.
	q.ID.Set = q.ID.V != ""
	q.Token.Set = q.Token.V != ""
	switch strings.ToLower(q.Command.V) {
	case "add":
		return s.commandAdd(x, &q)
	case "pop":
		return s.commandPop(x, &q)
	case "finish", "delete":
		return s.commandEnd(x, &q)
	case "":
		return job.Invalid("command", "is missing; it takes add, pop, finish or delete")
	default:
		return job.Invalid("command", "is %.40q; it takes add, pop, finish or delete", q.Command.V)
	}
}

func (s *server) commandAdd(x *call, q *wire.CommandRequest) error {
	traceOf(x.r).addTo(&q.Headers)
	op, err := s.addOp(&q.AddRequest, time.Now())
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

// commandPop reserves. Without count the response is the one job; with count it also
// lists the jobs. No job is a success with an empty id.
func (s *server) commandPop(x *call, q *wire.CommandRequest) error {
	if err := job.CheckTopic("topic", q.Topic.V); err != nil { // the one of topics
		return err
	}
	count, err := wire.Within("count", q.Count.Or(1), job.MaxReserve)
	if err != nil {
		return err
	}
	wait, err := job.Millis("timeout", q.Timeout.V, job.MaxWait)
	if err != nil {
		return err
	}
	r := &jobpb.Reserve{Topics: []string{q.Topic.V}, Max: count, MaxBytes: job.MaxReserveBytes}
	return s.handOut(x, r, time.Duration(wait)*time.Millisecond, func(jobs []*jobpb.Reserved) {
		x.json.success()
		x.json.text("error", "")
		if len(jobs) > 0 {
			x.json.popped(jobs[0])
		} else {
			x.json.text("id", "")
			x.json.null("value")
		}
		if q.Count.Set {
			objects(&x.json, "jobs", jobs, x.json.popped)
		}
		x.json.endObject()
	})
}

// popped adds the fields of a reserved job.
func (w *writer) popped(j *jobpb.Reserved) {
	w.text("id", j.Id)
	w.body("value", j.BodyKind, j.Body)
	w.text("token", job.TokenOf(j).String())
}

// commandEnd finishes or deletes a job.
func (s *server) commandEnd(x *call, q *wire.CommandRequest) error {
	if err := job.CheckRefID("id", q.ID.V); err != nil {
		return err
	}
	ref := &jobpb.Ref{Id: q.ID.V}
	if q.Token.Set {
		if err := fence(ref, q.Token.V); err != nil {
			return err
		}
	}
	op := &jobpb.Op{Kind: &jobpb.Op_Finish{Finish: &jobpb.Finish{Ref: ref}}}
	if strings.EqualFold(q.Command.V, "delete") {
		op = &jobpb.Op{Kind: &jobpb.Op_Delete{Delete: &jobpb.Delete{Ref: ref}}}
		if !q.Token.Set { // else it is a finish
			x.manages("delete", "job "+q.ID.V)
		}
	}
	if _, err := s.doOne(x, op); err != nil {
		return err
	}
	x.json.commandDone(q.ID.V)
	return nil
}

// commandDone writes the response of a command that has no value.
func (w *writer) commandDone(id string) {
	w.success()
	w.text("error", "")
	w.text("id", id)
	w.null("value")
	w.endObject()
}

// commandFailure writes the response of a command that failed: the fields of the
// protocol, and those of every other error.
func (w *writer) commandFailure(e *job.Error, id string) {
	w.beginObject()
	w.failure(e)
	w.text("id", brief(id))
	w.null("value")
	w.endObject()
}
