package openapi

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

// use is what a type is used for.
type use int

const (
	ofRequest use = iota
	ofReply       // the whole reply of a call: it begins with success
	ofItem        // within a reply
)

// shown are the types of replies that requests have in another form.
var shown = map[reflect.Type]reflect.Type{
	reflect.TypeFor[wire.RuleRequest]():   reflect.TypeFor[wire.Rule](),
	reflect.TypeFor[wire.LimitsRequest](): reflect.TypeFor[wire.TokenLimits](),
}

// ref returns a reference to the schema of a type, which it describes if nobody has.
func (d *describer) ref(t reflect.Type, u use) object {
	if other, found := shown[t]; found {
		t, u = other, ofItem
	}
	if name := t.Name(); d.schemas[name] == nil {
		d.schemas[name] = object{} // for those that refer to themselves
		d.schemas[name] = d.schema(t, u)
	}
	return object{"$ref": "#/components/schemas/" + t.Name()}
}

func (d *describer) schema(t reflect.Type, u use) object {
	switch t {
	case reflect.TypeFor[wire.Job](), reflect.TypeFor[wire.JobReply]():
		return d.job(u)
	case reflect.TypeFor[wire.GetResult](): // a job, or why it is not there
		made := d.job(ofReply)
		maps.Copy(made["properties"].(object), d.object(reflect.TypeFor[wire.Failure](), ofItem)["properties"].(object))
		made["required"] = []any{"success"}
		return made
	case reflect.TypeFor[wire.Settings]():
		return d.settings(reflect.TypeFor[wire.Push](), ofItem)
	case reflect.TypeFor[wire.SettingsRequest]():
		return d.settings(reflect.TypeFor[wire.PushRequest](), ofRequest)
	case reflect.TypeFor[wire.BackoffRequest]():
		waits := d.field(wire.Field{Type: reflect.TypeFor[[]float64](), Doc: wire.Shared("delays")}, u)
		waits["maxItems"] = job.MaxBackoffDelays
		each := wire.Field{Type: reflect.TypeFor[float64](), Doc: wire.Shared("delay")}
		each.Help = "The wait after every failed attempt, in seconds."
		return object{"description": "A wait in seconds, a list of them, or an object; see docs/retries.md.", "oneOf": []any{
			d.field(each, u), waits, d.object(reflect.TypeFor[wire.BackoffObject](), ofRequest),
		}}
	}
	return d.object(t, u)
}

// object describes a struct by its fields.
func (d *describer) object(t reflect.Type, u use) object {
	properties, required := object{}, []any{}
	if u == ofReply {
		properties["success"] = d.field(success, u)
		required = append(required, "success")
	}
	within := u
	if u == ofReply {
		within = ofItem
	}
	for _, f := range wire.Fields(t) {
		properties[f.Name] = d.field(f, within)
		if f.Required || u != ofRequest && !f.Optional {
			required = append(required, f.Name)
		}
	}
	made := objectOf(properties, required)
	if u == ofRequest {
		made["additionalProperties"] = false
	}
	return made
}

var success = wire.Field{Type: reflect.TypeFor[bool](), Doc: wire.Shared("success")}

func objectOf(properties object, required []any) object {
	made := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		made["required"] = required
	}
	return made
}

// field describes a field of a schema.
func (d *describer) field(f wire.Field, u use) object {
	made := d.kind(f.Type, u)
	if made["$ref"] == nil || f.Type == reflect.TypeFor[wire.BackoffRequest]() {
		made["description"] = f.Help
	}
	to := made // what the limits are of
	if item, ok := made["items"].(object); ok {
		to = item
	}
	if f.Least != nil {
		to["minimum"], to["maximum"] = *f.Least, *f.Most
		if *f.Most == math.Inf(1) {
			delete(to, "maximum")
		}
	}
	if f.Choices != nil {
		to["enum"] = f.Choices
	}
	if f.Bytes > 0 { // a character has at least one
		to["maxLength"] = f.Bytes
	}
	if f.Items > 0 {
		made["maxItems"] = f.Items
	}
	return made
}

// kind describes a type.
func (d *describer) kind(t reflect.Type, u use) object {
	switch t {
	case reflect.TypeFor[wire.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[wire.Timestamp]():
		return object{"oneOf": []any{
			object{"type": "string", "format": "date-time"},
			object{"type": "integer", "minimum": wire.LeastNumber, "maximum": job.MaxInstantMS},
		}}
	case reflect.TypeFor[wire.Step]():
		return object{"oneOf": []any{
			object{"type": "string", "enum": []any{"minute", "hour", "day"}},
			object{"type": "number", "minimum": job.ForecastUnit.Seconds(), "maximum": job.MaxForecastSpan.Seconds(), "multipleOf": job.ForecastUnit.Seconds()},
		}}
	case reflect.TypeFor[wire.Headers](), reflect.TypeFor[map[string]string]():
		return object{"type": "object", "additionalProperties": object{"type": "string"}, "maxProperties": job.MaxHeaders}
	case reflect.TypeFor[wire.Body](), reflect.TypeFor[wire.Any]():
		return object{"type": []any{"object", "array", "string", "number", "boolean", "null"}}
	case reflect.TypeFor[wire.BackoffRequest]():
		return d.ref(t, ofRequest)
	}
	switch t.Kind() {
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int64, reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Pointer:
		return d.kind(t.Elem(), u)
	case reflect.Slice:
		return object{"type": "array", "items": d.kind(t.Elem(), u)}
	case reflect.Struct:
		return d.structure(t, u)
	}
	panic(fmt.Sprintf("api/openapi does not know the type %s", t))
}

// structure describes a struct as a field: an optional field, a list, or an object.
func (d *describer) structure(t reflect.Type, u use) object {
	v, optional := t.FieldByName("V")
	if !optional {
		return d.ref(t, u)
	}
	made := d.kind(v.Type, u)
	if l, ok := reflect.Zero(t).Interface().(interface{ AtMost() int }); ok {
		made["maxItems"] = l.AtMost()
	}
	return made
}

var jobKinds = map[job.FieldType]reflect.Type{
	job.FieldText: reflect.TypeFor[string](), job.FieldNumber: reflect.TypeFor[uint64](), job.FieldInstant: reflect.TypeFor[wire.Time](),
	job.FieldDuration: reflect.TypeFor[wire.Seconds](), job.FieldState: reflect.TypeFor[string](),
	job.FieldBackoff: reflect.TypeFor[wire.Backoff](), job.FieldHeaders: reflect.TypeFor[map[string]string](),
}

// job describes a job by the table of its fields.
func (d *describer) job(u use) object {
	properties, required := object{}, []any{}
	for _, f := range job.Fields {
		made := d.kind(jobKinds[f.Type], ofItem)
		if made["$ref"] == nil {
			made["description"] = plainHelp(f.Help)
			if f.Type == job.FieldDuration {
				made["description"] = plainHelp(f.Help) + ", in seconds"
				made["minimum"], made["maximum"] = 0, wire.Shared(f.Name).Most
			}
		}
		if f.Type == job.FieldState {
			made["enum"] = slices.Sorted(maps.Keys(wire.StatesByName))
		}
		properties[f.Name] = made
		if !f.Optional && f.In == jobpb.State_STATE_NONE {
			required = append(required, f.Name)
		}
	}
	properties["body"] = d.field(wire.Field{Type: reflect.TypeFor[wire.Any](), Doc: wire.Shared("body")}, u)
	properties["body_base64"] = d.field(wire.Field{Type: reflect.TypeFor[string](), Doc: wire.Shared("body_base64")}, u)
	if u == ofReply {
		properties["success"] = d.field(success, u)
		required = append(required, "success")
	}
	return objectOf(properties, required)
}

var settingKinds = map[job.SettingType]reflect.Type{
	job.SettingDuration: reflect.TypeFor[wire.Seconds](), job.SettingCount: reflect.TypeFor[uint64](), job.SettingRate: reflect.TypeFor[float64](),
	job.SettingChoice: reflect.TypeFor[string](), job.SettingSwitch: reflect.TypeFor[bool](), job.SettingText: reflect.TypeFor[string](),
	job.SettingNames: reflect.TypeFor[[]string](), job.SettingBackoff: reflect.TypeFor[wire.Backoff](), job.SettingPush: reflect.TypeFor[wire.Push](),
}

// settings describes the settings of a topic by their table.
func (d *describer) settings(push reflect.Type, u use) object {
	properties := object{}
	for _, s := range job.Settings {
		kind := settingKinds[s.Type]
		switch {
		case s.Type == job.SettingPush:
			kind = push
		case s.Type == job.SettingBackoff && u == ofRequest:
			kind = reflect.TypeFor[wire.BackoffRequest]()
		}
		made := d.kind(kind, u)
		if len(s.Choices) > 0 {
			made["enum"] = s.Choices
		}
		if u == ofRequest { // null takes the setting away
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
	if u == ofRequest {
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
