package ui

import (
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tarry/job"
)

// pushView is the HTTP target of a topic in the form of its settings.
type pushView struct {
	Fields []pushField
	// HasSecret: there is a secret, which the API does not show.
	HasSecret bool
}

// pushField is one part of the target.
type pushField struct {
	Name        string // also the field that errors of the API name
	Help        string
	Placeholder string
	Value, Was  string
	Switch      bool // its value is "true" or empty
}

// pushSecret is the field of the secret, which is never part of a page. Empty keeps the
// present one.
const pushSecret = "push.secret"

// storedPush is the API's form of a target.
type storedPush struct {
	URL         string `json:"url,omitzero"`
	Secret      string `json:"secret,omitzero"`
	HasSecret   bool   `json:"has_secret,omitzero"`
	Timeout     any    `json:"timeout,omitzero"`
	Concurrency any    `json:"concurrency,omitzero"`
	JobURLs     bool   `json:"job_urls,omitzero"`
}

// pushOf returns the form for a target, as the API shows it; after a failed change with what
// the person wrote.
func (q *request) pushOf(stored jsontext.Value) (pushView, error) {
	var p storedPush
	if len(stored) > 0 {
		if err := json.Unmarshal(stored, &p); err != nil {
			return pushView{}, defect(err)
		}
	}
	v := pushView{HasSecret: p.HasSecret, Fields: []pushField{
		{Name: "push.url", Placeholder: "none", Was: p.URL, Help: "where the jobs are posted; values in its query are shown as ***, which keeps them"},
		{Name: "push.timeout", Placeholder: "10s", Was: timeText(p.Timeout), Help: "how long a post may take, 0.1s to 5m"},
		{Name: "push.concurrency", Placeholder: "10", Was: numberText(p.Concurrency), Help: "posts at a time, 1 to 100"},
		{Name: "push.job_urls", Switch: true, Help: "whether a job may have a URL of its own"},
	}}
	if p.JobURLs {
		v.Fields[3].Was = "true"
	}
	for i := range v.Fields {
		f := &v.Fields[i]
		f.Value = f.Was
		if q.failure != nil && q.r.Form.Has(f.Name) {
			f.Value = q.value(f.Name)
		}
	}
	return v, nil
}

func numberText(v any) string {
	if n, ok := v.(float64); ok {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return ""
}

func timeText(v any) string {
	if n, ok := v.(float64); ok {
		return job.DurationText(time.Duration(job.MillisOf(n)) * time.Millisecond)
	}
	return ""
}

// changedPush returns the target that a form asks for, and whether it differs from the one
// that the form was shown with. nil removes it.
func (q *request) changedPush() (target any, changed bool, err error) {
	text := func(name string) string { return strings.TrimSpace(q.value(name)) }
	for _, name := range []string{"push.url", "push.timeout", "push.concurrency", "push.job_urls"} {
		changed = changed || q.r.PostForm.Has(name) && text(name) != q.value("was."+name)
	}
	secret := q.value(pushSecret)
	if !changed && secret == "" {
		return nil, false, nil
	}
	p := storedPush{URL: text("push.url"), JobURLs: text("push.job_urls") == "true"}
	if p.URL == "" && !p.JobURLs && secret == "" {
		return nil, true, nil
	}
	if timeout := text("push.timeout"); timeout != "" {
		if p.Timeout, err = durationJSON("push.timeout", timeout); err != nil {
			return nil, false, err
		}
	}
	p.Concurrency, p.Secret = settingNumber(text("push.concurrency")), secret
	return p, true, nil
}

// settingNumber returns a number, or text that the API refuses with the name of the field; nil
// if there is none.
func settingNumber(text string) any {
	if text == "" {
		return nil
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && jsontext.Value(text).IsValid() {
		return n
	}
	return text
}
