package ui

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tarry/job"
)

const settingsPath = Root + "topic/settings"

// settingsView is the data of the page of a topic's settings.
type settingsView struct {
	Topic    string
	Revision uint64 // 0: none are set
	Rows     []settingRow
	Push     pushView
}

// settingRow is one setting in the form.
type settingRow struct {
	*job.Setting
	Help    string
	Default string
	Value   string   // as text; empty: not set
	Was     string   // Value when the form was shown
	Choices []string // of a select; nil: a text field
}

// field returns the name of the field of a setting in the form. Its value when the form was
// shown is in wasField, so that a form changes only what a person has changed.
func field(s *job.Setting) string    { return "set." + s.Name }
func wasField(s *job.Setting) string { return "was." + s.Name }

// Field and WasField are for the template.
func (r settingRow) Field() string    { return field(r.Setting) }
func (r settingRow) WasField() string { return wasField(r.Setting) }

// storedSettings is the API's reply.
type storedSettings struct {
	Revision uint64                    `json:"revision"`
	Settings map[string]jsontext.Value `json:"settings"`
}

// links are links in the help of settings, which is text of the docs.
var links = regexp.MustCompile(`\[([^]]+)\]\([^)]+\)`)

func plain(text string) string {
	return strings.ReplaceAll(links.ReplaceAllString(text, "$1"), "`", "")
}

// showSettings shows all settings of a topic in a form.
func showSettings(q *request) (any, error) {
	topic, err := q.required("topic")
	if err != nil {
		return nil, err
	}
	q.title = "Settings of " + topic
	var stored storedSettings
	if err := q.read("/v1/topics/"+segment(topic)+"/settings", nil, &stored); err != nil && !isNotFound(err) {
		return nil, err
	}
	v := &settingsView{Topic: topic, Revision: stored.Revision}
	for _, s := range job.Settings {
		if s.Type == job.SettingPush {
			push, err := q.pushOf(stored.Settings[s.Name])
			if err != nil {
				return nil, err
			}
			v.Push = push
			continue
		}
		r := settingRow{Setting: s, Help: plain(s.Help), Default: plain(s.Default), Was: settingText(s, stored.Settings[s.Name])}
		r.Value = r.Was
		if q.failure != nil && q.r.Form.Has(r.Field()) {
			r.Value = q.value(r.Field()) // what the person wrote
		}
		switch s.Type {
		case job.SettingBackoff:
			r.Help += ", such as 5s, 30s, 2m"
		case job.SettingNames:
			r.Help += ", separated by commas"
		case job.SettingChoice:
			r.Choices = s.Choices
		case job.SettingSwitch:
			r.Choices = []string{"true", "false"}
		}
		v.Rows = append(v.Rows, r)
	}
	return v, nil
}

// settingText returns the JSON of a setting as a person writes it: durations with units, text
// without quotes, lists separated by commas.
func settingText(s *job.Setting, v jsontext.Value) string {
	var text string
	var number float64
	var list []jsontext.Value
	var steps struct {
		Delays []jsontext.Value `json:"delays"`
	}
	switch {
	case len(v) == 0:
		return ""
	case json.Unmarshal(v, &text) == nil:
		return text
	case s.Type == job.SettingDuration || s.Type == job.SettingBackoff:
		if json.Unmarshal(v, &number) == nil {
			return job.DurationText(time.Duration(job.MillisOf(number)) * time.Millisecond)
		}
		if json.Unmarshal(v, &steps, json.RejectUnknownMembers(true)) != nil {
			return string(v)
		}
		list = steps.Delays // a backoff as a list
	case json.Unmarshal(v, &list) != nil:
		return string(v)
	}
	parts := make([]string, len(list))
	for i, item := range list {
		parts[i] = settingText(s, item)
	}
	return strings.Join(parts, ", ")
}

// settingJSON is the inverse of settingText. What has not the form of the setting's type is
// mostly a string, which the API refuses with the name of the field.
func settingJSON(s *job.Setting, text string) (any, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil // removes the setting
	}
	switch s.Type {
	case job.SettingText, job.SettingChoice:
		return text, nil
	case job.SettingSwitch:
		return text == "true", nil
	case job.SettingDuration:
		return durationJSON(s.Name, text)
	case job.SettingNames:
		names := strings.Split(text, ",")
		for i := range names {
			names[i] = strings.TrimSpace(names[i])
		}
		return names, nil
	case job.SettingBackoff:
		if text[0] == '{' && jsontext.Value(text).IsValid() {
			return jsontext.Value(text), nil
		}
		delays := []any{}
		for part := range strings.SplitSeq(text, ",") {
			d, err := durationJSON(s.Name, strings.TrimSpace(part))
			if err != nil {
				return nil, err
			}
			delays = append(delays, d)
		}
		return delays, nil
	}
	return settingNumber(text), nil
}

// durationJSON returns what a person wrote in a field as the API takes it: in seconds.
func durationJSON(field, text string) (any, error) {
	d, err := job.ParseDuration(text)
	if err != nil {
		return nil, invalid(field, field+": "+err.Error())
	}
	return d.Seconds(), nil
}

// changeSettings changes the settings that differ from those that the form was shown with, if
// nobody else has changed any since.
func changeSettings(q *request) (*outcome, error) {
	topic, err := q.required("topic")
	if err != nil {
		return nil, err
	}
	changes := map[string]any{}
	for _, s := range job.Settings {
		if name := field(s); q.r.PostForm.Has(name) && strings.TrimSpace(q.value(name)) != q.value(wasField(s)) {
			if changes[s.Name], err = settingJSON(s, q.value(name)); err != nil {
				return nil, err
			}
		}
	}
	if push, changed, err := q.changedPush(); err != nil {
		return nil, err
	} else if changed {
		changes["push"] = push
	}
	to := address(settingsPath, "topic", topic)
	if len(changes) == 0 {
		return &outcome{to: to, flash: "Nothing was changed."}, nil
	}
	path := "/v1/topics/" + segment(topic) + "/settings?" + url.Values{"if_revision": {q.value("revision")}}.Encode()
	if err := q.send(http.MethodPatch, path, changes, nil); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(changes))
	for name := range changes {
		names = append(names, name)
	}
	slices.Sort(names)
	return &outcome{to: to, flash: "Changed: " + strings.Join(names, ", ") + "."}, nil
}
