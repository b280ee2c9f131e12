package ui

import (
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tarry/client"
)

const editPath = Root + "job/edit"

// maxEdited bounds the text of a body that can be edited; in a form, a byte may take three.
const maxEdited = maxForm / 4

// editView is the data of the form that changes a job.
type editView struct {
	Job      client.Job
	Due      string // RFC 3339, or what the person wrote
	Priority string
	// Text is the body; it cannot be edited here if it is binary or large.
	Text     string
	Editable bool
}

// showEdit shows the form that changes a job.
func showEdit(q *request) (any, error) {
	id, err := q.required("id")
	if err != nil {
		return nil, err
	}
	q.title = "Edit " + id
	v := &editView{}
	if err := q.read("/v1/jobs/"+segment(id), nil, &v.Job); err != nil {
		return nil, err
	}
	b := v.Job.Body.Bytes()
	text := bodyOf(&v.Job, "").Text
	// A form has a limit, and indents of a nested body are larger than the body.
	v.Editable = len(b) <= maxShown && utf8.Valid(b) && len(text) <= maxEdited
	v.Due, v.Priority = v.Job.DueAt.UTC().Format(dueFormat), strconv.FormatUint(uint64(v.Job.Priority), 10)
	if v.Editable {
		v.Text = text
	}
	if q.failure != nil { // what the person wrote is not lost
		v.Due, v.Priority, v.Text = q.value("due_at"), q.value("priority"), q.value("body")
	}
	return v, nil
}

const dueFormat = "2006-01-02T15:04:05.000Z"

// changeJob changes what differs from the job that the form was made from, if that job is
// still the same.
func changeJob(q *request) (*outcome, error) {
	id, err := q.required("id")
	if err != nil {
		return nil, err
	}
	revision, err := strconv.ParseUint(q.value("revision"), 10, 64)
	if err != nil {
		return nil, invalid("revision", "revision is missing")
	}
	at := "/v1/jobs/" + segment(id)
	var j client.Job
	if err := q.read(at, nil, &j); err != nil {
		return nil, err
	}
	in := map[string]any{"if_revision": revision}
	if text := strings.TrimSpace(q.value("due_at")); text != "" && text != j.DueAt.UTC().Format(dueFormat) {
		in["due_at"] = text
	}
	if text := strings.TrimSpace(q.value("in")); text != "" {
		if in["delay"], err = durationJSON("delay", text); err != nil {
			return nil, err
		}
		delete(in, "due_at")
	}
	if text := strings.TrimSpace(q.value("priority")); text != strconv.FormatUint(uint64(j.Priority), 10) {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, invalid("priority", "priority must be a whole number, 0 to 4294967295")
		}
		in["priority"] = n
	}
	if q.r.PostForm.Has("body") {
		// Browsers send line ends as CR LF.
		text := strings.ReplaceAll(q.value("body"), "\r\n", "\n")
		if text != bodyOf(&j, "").Text {
			in["body"] = bodyJSON(&j, text)
		}
	}
	to := address(Root+"job", "id", id)
	if len(in) == 1 {
		return &outcome{to: to, flash: "Nothing was changed."}, nil
	}
	if err := q.send(http.MethodPatch, at, in, nil); err != nil {
		return nil, err
	}
	return &outcome{to: to, flash: "The job is changed."}, nil
}

// bodyJSON returns text as the body of a job: JSON if it is that, and the old body was;
// otherwise a string.
func bodyJSON(old *client.Job, text string) any {
	if value := jsontext.Value(text); old.Body.IsJSON() && value.IsValid() {
		return value
	}
	return text
}

// curlOf returns commands that show a job and that add one like it, at the origin that the
// browser used.
func curlOf(origin string, j *client.Job) []string {
	add := map[string]any{"topic": j.Topic, "priority": j.Priority, "ttr": j.TTR}
	if len(j.Headers) > 0 {
		add["headers"] = j.Headers
	}
	switch b := j.Body.Bytes(); {
	case len(b) > maxShown:
		add["body"] = "..."
	case j.Body.IsJSON():
		add["body"] = j.Body.Value
	case utf8.Valid(b):
		add["body"] = string(b)
	default:
		add["body_base64"] = b
	}
	text, err := json.Marshal(add, json.Deterministic(true))
	if err != nil {
		return nil // a body of another client, which is no JSON
	}
	return []string{
		"curl -s " + shellWord(origin+"/v1/jobs/"+segment(j.ID)),
		"curl -s " + shellWord(origin+"/v1/jobs") + " -d " + shellWord(string(text)),
	}
}
