package api

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"tarry/api/wire"
	"tarry/job"
	"tarry/job/jobpb"
)

// ref returns a reference to a reply's schema, which it describes if nobody has.
func (d *describer) ref(name string) object {
	if d.schemas[name] == nil {
		d.schemas[name] = object{} // for those that refer to themselves
		switch name {
		case "Job", "JobReply":
			d.schemas[name] = d.job(name)
		case "GetResult": // a job, or why it is not there
			made := d.job("JobReply")
			maps.Copy(made["properties"].(object), d.shape(name, failedItem)["properties"].(object))
			made["required"] = []any{"success"}
			d.schemas[name] = made
		case "Settings":
			d.schemas[name] = d.settings("Push", false)
		case "SettingsRequest":
			d.schemas[name] = d.settings("PushRequest", true)
		case "BackoffRequest":
			waits := d.field(name, "delays", "[]seconds")
			waits["maxItems"] = job.MaxBackoffDelays
			d.schemas[name] = object{"description": "A wait in seconds, a list of them, or an object; see docs/retries.md.", "oneOf": []any{
				d.field(name, "delay", "seconds"), waits, d.ofType(name, reflect.TypeFor[wire.BackoffObject](), nil),
			}}
		default:
			fields, found := replies[name]
			if !found {
				panic("api/openapi_calls.go has no reply " + name)
			}
			d.schemas[name] = d.shape(name, fields)
		}
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// shape describes an object by a line such as "id seq:int due_at?:time jobs:[]Job": its
// fields, with ? those that may be absent, and their types, which are text unless given.
func (d *describer) shape(name, fields string) object {
	properties, required := object{}, []any{}
	for _, f := range strings.Fields(fields) {
		field, kind, _ := strings.Cut(f, ":")
		field, optional := strings.CutSuffix(field, "?")
		properties[field] = d.field(name, field, kind)
		if !optional {
			required = append(required, field)
		}
	}
	return objectOf(properties, required)
}

func objectOf(properties object, required []any) object {
	made := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		made["required"] = required
	}
	return made
}

// field describes a field of a schema.
func (d *describer) field(in, name, kind string) object {
	made := d.kind(in, name, kind)
	if made["$ref"] == nil || kind == "BackoffRequest" {
		made["description"] = helpOf(in, name)
	}
	doc := docOf(in, name)
	to := made
	if item, ok := made["items"].(object); ok && doc.choices == nil {
		to = item
	}
	if doc.least != nil {
		to["minimum"], to["maximum"] = *doc.least, *doc.most
		if *doc.most == math.Inf(1) {
			delete(to, "maximum")
		}
	}
	if doc.choices != nil {
		if item, ok := made["items"].(object); ok {
			to = item
		}
		to["enum"] = doc.choices
	}
	if doc.bytes > 0 { // a character has at least one
		if item, ok := made["items"].(object); ok {
			to = item
		}
		to["maxLength"] = doc.bytes
	}
	if doc.items > 0 {
		made["maxItems"] = doc.items
	}
	return made
}

func (d *describer) kind(in, name, kind string) object {
	if item, ok := strings.CutPrefix(kind, "[]"); ok {
		return object{"type": "array", "items": d.kind(in, name, item)}
	}
	switch kind {
	case "", "string":
		return object{"type": "string"}
	case "int":
		return object{"type": "integer", "minimum": 0}
	case "num", "seconds":
		return object{"type": "number"}
	case "bool":
		return object{"type": "boolean"}
	case "time":
		return object{"type": "string", "format": "date-time"}
	case "timestamp":
		return object{"oneOf": []any{
			object{"type": "string", "format": "date-time"},
			object{"type": "integer", "minimum": wire.LeastNumber, "maximum": job.MaxInstantMS},
		}}
	case "step":
		return object{"oneOf": []any{
			object{"type": "string", "enum": []any{"minute", "hour", "day"}},
			object{"type": "number", "minimum": job.ForecastUnit.Seconds(), "maximum": job.MaxForecastSpan.Seconds(), "multipleOf": job.ForecastUnit.Seconds()},
		}}
	case "headers":
		return object{"type": "object", "additionalProperties": object{"type": "string"}, "maxProperties": job.MaxHeaders}
	case "any":
		return object{"type": []any{"object", "array", "string", "number", "boolean", "null"}}
	}
	return d.ref(kind)
}

// request describes the request of a call by the type that it is decoded into.
func (d *describer) request(doc callDoc) object {
	if doc.request == "" {
		panic(doc.name + " takes a request, of which api/openapi_calls.go says nothing")
	}
	if d.schemas[doc.request] == nil {
		if doc.request == "SettingsRequest" {
			return d.ref(doc.request)
		}
		d.schemas[doc.request] = object{}
		made := d.ofType(doc.request, requests[doc.request], doc.takes)
		if len(doc.required) > 0 {
			var required []any
			for _, name := range doc.required {
				required = append(required, name)
			}
			made["required"] = required
		}
		d.schemas[doc.request] = made
	}
	return object{"$ref": "#/components/schemas/" + doc.request}
}

// ofType describes an object by the type that it is decoded into; with takes, only these
// fields of it.
func (d *describer) ofType(name string, t reflect.Type, takes []string) object {
	properties := object{}
	for _, f := range reflect.VisibleFields(t) {
		field := f.Tag.Get("json")
		if field == "" || takes != nil && !slices.Contains(takes, field) {
			continue
		}
		properties[field] = d.field(name, field, d.kindOf(f.Type))
		if l, ok := reflect.Zero(f.Type).Interface().(interface{ AtMost() int }); ok {
			properties[field].(object)["maxItems"] = l.AtMost()
		}
	}
	made := objectOf(properties, nil)
	made["additionalProperties"] = false
	return made
}

// kindOf returns the kind of a type that requests are decoded into.
func (d *describer) kindOf(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[wire.Opt[string]](), reflect.TypeFor[string]():
		return "string"
	case reflect.TypeFor[wire.Opt[int64]]():
		return "int"
	case reflect.TypeFor[wire.Opt[float64]](), reflect.TypeFor[float64]():
		return "num"
	case reflect.TypeFor[wire.Opt[bool]]():
		return "bool"
	case reflect.TypeFor[wire.Timestamp]():
		return "timestamp"
	case reflect.TypeFor[wire.Body]():
		return "any"
	case reflect.TypeFor[wire.Headers]():
		return "headers"
	case reflect.TypeFor[wire.BackoffRequest]():
		return "BackoffRequest"
	}
	if v, ok := t.FieldByName("V"); ok { // of an opt or a list
		if v.Type.Kind() == reflect.Slice {
			return "[]" + d.kindOf(v.Type.Elem())
		}
		return d.kindOf(v.Type)
	}
	for name, of := range requests {
		if of == t && (name == "AddRequest" || name == "ImportItem" || name == "Rule" || name == "ChangeItem" || name == "FinishItem" || name == "UpdateItem" || name == "Filter" || name == "TokenLimits" || name == "Quotas") {
			if d.schemas[name] == nil {
				d.schemas[name] = d.ofType(name, of, nil)
			}
			return name
		}
	}
	panic(fmt.Sprintf("api/openapi_schema.go does not know the type %s", t))
}

// job describes a job by the table of its fields.
func (d *describer) job(name string) object {
	kinds := map[job.FieldType]string{
		job.FieldText: "string", job.FieldNumber: "int", job.FieldInstant: "time", job.FieldDuration: "seconds", job.FieldState: "string",
		job.FieldBackoff: "Backoff", job.FieldHeaders: "headers",
	}
	properties, required := object{}, []any{}
	for _, f := range job.Fields {
		made := d.kind("Job", f.Name, kinds[f.Type])
		if made["$ref"] == nil {
			made["description"] = plainHelp(f.Help)
			if f.Type == job.FieldDuration {
				made["description"] = plainHelp(f.Help) + ", in seconds"
				made["minimum"], made["maximum"] = 0, docOf("Job", f.Name).most
			}
		}
		if f.Type == job.FieldState {
			made["enum"] = stateChoices
		}
		properties[f.Name] = made
		if !f.Optional && f.In == jobpb.State_STATE_NONE {
			required = append(required, f.Name)
		}
	}
	for _, more := range []string{"body", "body_base64"} {
		properties[more] = d.field("Job", more, map[string]string{"body": "any"}[more])
	}
	if name == "JobReply" {
		properties["success"] = d.field(name, "success", "bool")
		required = append(required, "success")
	}
	return objectOf(properties, required)
}

// settings describes the settings of a topic by their table.
func (d *describer) settings(push string, request bool) object {
	kinds := map[job.SettingType]string{
		job.SettingDuration: "seconds", job.SettingCount: "int", job.SettingRate: "num", job.SettingChoice: "string", job.SettingSwitch: "bool",
		job.SettingText: "string", job.SettingNames: "[]string", job.SettingBackoff: "Backoff", job.SettingPush: push,
	}
	properties := object{}
	for _, s := range job.Settings {
		kind, known := kinds[s.Type]
		if !known {
			panic("api/openapi_schema.go does not know the type of the setting " + s.Name)
		}
		if request && s.Type == job.SettingBackoff {
			kind = "BackoffRequest"
		}
		made := d.kind("Settings", s.Name, kind)
		if len(s.Choices) > 0 {
			made["enum"] = s.Choices
		}
		if request { // null takes the setting away
			if made["$ref"] != nil || made["enum"] != nil {
				made = object{"oneOf": []any{made, object{"type": "null"}}}
			} else {
				made["type"] = []any{made["type"], "null"}
			}
		}
		made["description"] = plainHelp(s.Help) + ". Without it: " + plainHelp(s.Default) + "."
		if least, most, unit := s.Range(); unit != "" {
			made["minimum"] = least
			if most < math.MaxInt64 {
				made["maximum"] = most
			}
			if s.Type != job.SettingCount {
				made["description"] = made["description"].(string) + " In " + unit + "."
			}
		}
		switch s.Type {
		case job.SettingText:
			made["maxLength"] = job.MaxDescriptionBytes
		case job.SettingNames:
			made["maxItems"] = job.MaxIndexHeaders
			made["items"].(object)["maxLength"] = job.MaxNameBytes
		}
		properties[s.Name] = made
	}
	made := objectOf(properties, nil)
	if request {
		made["additionalProperties"] = false
	}
	return made
}

// plainHelp is a help text without the marks of Markdown.
func plainHelp(text string) string {
	for {
		open := strings.IndexByte(text, '[')
		if open < 0 {
			return strings.ReplaceAll(text, "`", "")
		}
		label, rest, _ := strings.Cut(text[open+1:], "](")
		_, rest, _ = strings.Cut(rest, ")")
		text = text[:open] + label + rest
	}
}

var stateChoices = slices.Sorted(maps.Keys(wire.StatesByName))
