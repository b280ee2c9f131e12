package ui

import (
	"bytes"
	"encoding/hex"
	"io"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"tarry/client"
)

const (
	// maxShown bounds how much of a body is shown, in bytes.
	maxShown = 64 << 10
	// maxIndented bounds a body with line breaks and indents: deep nesting would make
	// gigabytes of a small one.
	maxIndented = 8 * maxShown
)

// jobView is the data of the page of a job.
type jobView struct {
	Job     client.Job
	Explain client.Explanation
	History client.History
	// Timeline is its life, from its history if there is one.
	Timeline []moment
	Body     bodyView
	Actions  []jobsVerb
	CanEdit  bool
	HasSteps bool     // each step of its life is kept
	Schedule string   // whose run it is; empty: of none
	Curl     []string // commands that show it, and that add one like it
}

// bodyView is a body in one of the forms that it can be shown in.
type bodyView struct {
	Size  int
	Forms []tab
	Text  string
	Cut   bool // Text is only the beginning
}

// showJob shows one job.
func showJob(q *request) (any, error) {
	id, err := q.required("id")
	if err != nil {
		return nil, err
	}
	q.title = "Job " + id
	v := &jobView{}
	at := "/v1/jobs/" + segment(id)
	if err := q.read(at, nil, &v.Job); err != nil {
		return nil, err
	}
	// The job may end between the reads.
	if err := q.read(at+"/explain", nil, &v.Explain); err != nil && !isNotFound(err) {
		return nil, err
	}
	if err := q.read(at+"/history", nil, &v.History); err != nil && !isNotFound(err) {
		return nil, err
	}
	v.Timeline = timelineOf(&v.Job, v.History.Events, uint64(v.History.Dropped), q.now())
	v.HasSteps = kept(v.History.Events)
	if v.Schedule, err = q.scheduleOf(id); err != nil {
		return nil, err
	}
	v.Curl = curlOf(q.origin(), &v.Job)
	switch v.Job.State {
	case "delayed", "ready", "dead":
		v.CanEdit = true
	}
	v.Actions = actionsOn(string(v.Job.State))
	v.Body = bodyOf(&v.Job, q.value("body"))
	return v, nil
}

// scheduleOf returns the schedule whose run a job is, by its id: NAME@INSTANT.
func (q *request) scheduleOf(id string) (name string, err error) {
	at := strings.LastIndexByte(id, '@')
	if at <= 0 {
		return "", nil
	}
	var s client.ScheduleInfo
	switch err := q.read("/v1/schedules/"+segment(id[:at]), nil, &s); {
	case err == nil:
		return id[:at], nil
	case isInvalid(err) || isNotFound(err):
		return "", nil // a producer's id that has the character
	default:
		return "", err
	}
}

// bodyOf shows a body in a form: json, text or hex; empty: the first that fits.
func bodyOf(j *client.Job, form string) bodyView {
	b := j.Body.Bytes()
	v := bodyView{Size: len(b)}
	pretty, isJSON := indented(b)
	forms := []string{"hex"}
	if utf8.Valid(b) {
		forms = append([]string{"text"}, forms...)
	}
	if isJSON {
		forms = append([]string{"json"}, forms...)
	}
	current := forms[0]
	for _, f := range forms {
		if f == form {
			current = f
		}
	}
	for _, f := range forms {
		v.Forms = append(v.Forms, tab{Name: f, Address: Root + "job?" + url.Values{"id": {j.ID}, "body": {f}}.Encode() + "#body", Current: f == current})
	}
	switch shown := b[:min(len(b), maxShown)]; current {
	case "json":
		v.Text = pretty
	case "text":
		v.Text = string(bytes.ToValidUTF8(shown, nil))
		v.Cut = len(shown) < len(b)
	case "hex":
		shown = shown[:min(len(shown), maxShown/8)]
		v.Text = hex.Dump(shown)
		v.Cut = len(shown) < len(b)
	}
	return v
}

// indented returns a JSON value with line breaks and indents; ok is false if b is none or too
// large. The size is known before there is any text: an encoder buffers all of a nested value.
func indented(b []byte) (text string, ok bool) {
	if len(b) == 0 || len(b) > maxShown {
		return "", false
	}
	from, size := jsontext.NewDecoder(bytes.NewReader(b), jsontext.AllowDuplicateNames(true)), len(b)
	for {
		_, err := from.ReadToken()
		if err == io.EOF {
			break
		}
		if size += len("\n") + len(indent)*from.StackDepth(); err != nil || size > maxIndented {
			return "", false
		}
	}
	pretty := jsontext.Value(bytes.Clone(b))
	err := pretty.Indent(jsontext.WithIndent(indent))
	return string(pretty), err == nil
}

const indent = "  "
