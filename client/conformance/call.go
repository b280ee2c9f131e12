package main

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"time"

	"tarry/client"
)

// parameters names those of the methods that are no structs, because Go does not know the names at run time.
var parameters = map[string]string{
	"add_all": "jobs", "add_batch": "jobs", "change_settings": "topic", "dead": "topic max", "dead_topics": "reason max",
	"delete_batch": "jobs", "delete_namespace": "name", "delete_schedule": "name", "delete_settings": "topic",
	"delete_token": "id", "explain": "id", "finish_and_reserve": "finish", "finish_batch": "jobs", "finish_then": "then",
	"forecast": "topic", "forecast_topics": "max", "get": "id", "get_batch": "ids body", "history": "id", "join": "addresses",
	"kick": "id", "kick_batch": "ids", "kick_dead": "reason", "kick_jobs": "to_topic", "kick_to": "id to_topic",
	"kick_topic": "topic", "move": "to", "move_topic": "topic", "namespace": "name", "pause": "topic for",
	"pause_schedule": "name", "pause_until": "topic until", "preview_schedule": "name count", "preview_spec": "after count",
	"purge": "topic state", "purge_dead": "reason max", "put_namespace": "name", "put_schedule": "name", "put_token": "id",
	"rates": "topic", "release_topic": "topic consumer reason", "remove_member": "id", "reschedule": "topic",
	"resume": "topic", "resume_schedule": "name", "rotate_token": "id overlap", "run_schedule": "name key",
	"schedule": "name", "schedule_runs": "name", "set_settings": "topic", "settings": "topic", "token": "id",
	"topic": "topic", "touch": "ttr", "transfer_leadership": "id", "update": "id", "update_batch": "jobs",
}

// objects are the arguments that are a struct as a whole; the members of other structs are arguments.
var objects = map[string]string{"Selection": "found", "Update": "changes", "Settings": "settings", "Schedule": "schedule"}

type args map[string]json.RawMessage

// call calls the method of a client, or of a group of its calls, that is named as the call.
func call(ctx context.Context, c *client.Client, name string, text json.RawMessage) (any, error) {
	var a args
	if err := json.Unmarshal(text, &a); err != nil {
		return nil, err
	}
	switch { // methods that are two in Go
	case name == "delete":
		name = "delete_if"
	case name == "kick" && a["to_topic"] != nil:
		name = "kick_to"
	case name == "pause" && a["until"] != nil:
		name = "pause_until"
	case name == "get_batch" && a["body"] == nil:
		a["body"] = json.RawMessage("true")
	}
	method := methodOf(c, name)
	if !method.IsValid() {
		return nil, &client.Error{Code: "unknown_call"}
	}
	in, err := arguments(ctx, method.Type(), name, a)
	if err != nil {
		return nil, err
	}
	return results(method.Call(in))
}

// methodOf finds a method of the client, or of a group of its calls. What a name has of the group's own, as
// kick_topic has of Topics, is not in that of the method.
func methodOf(c *client.Client, call string) reflect.Value {
	groups := []struct {
		noun  string
		calls any
	}{{"topic", c.Topics()}, {"schedule", c.Schedules()}, {"token", c.Tokens()}, {"namespace", c.Namespaces()}}
	for _, g := range groups {
		name := strings.TrimPrefix(strings.TrimSuffix(call, "_"+g.noun), g.noun+"_")
		switch call {
		case g.noun:
			name = "get"
		case g.noun + "s":
			name = "list"
		}
		if name != call {
			if m := named(reflect.ValueOf(g.calls), name); m.IsValid() {
				return m
			}
		}
	}
	for _, calls := range []any{c, c.Topics(), c.Schedules(), c.Cluster(), c.Node()} {
		if m := named(reflect.ValueOf(calls), call); m.IsValid() {
			return m
		}
	}
	return reflect.Value{}
}

func named(v reflect.Value, call string) reflect.Value {
	for i := range v.NumMethod() {
		if isNamed(v.Type().Method(i).Name, call) {
			return v.Method(i)
		}
	}
	return reflect.Value{}
}

// isNamed reports whether a name of Go is one of the HTTP API, as IfExists is if_exists.
func isNamed(inGo, name string) bool {
	return strings.EqualFold(inGo, strings.ReplaceAll(name, "_", ""))
}

func arguments(ctx context.Context, method reflect.Type, call string, a args) ([]reflect.Value, error) {
	in := []reflect.Value{reflect.ValueOf(ctx)}
	names := strings.Fields(parameters[call])
	for i := 1; i < method.NumIn(); i++ {
		if method.IsVariadic() && i == method.NumIn()-1 {
			return append(in, removed(a["settings"])...), nil
		}
		v := reflect.New(method.In(i)).Elem()
		object, named := objects[v.Type().Name()]
		var err error
		switch {
		case named && a[object] != nil:
			err = decode(v, a[object])
		case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]():
			err = fill(v, a)
		case len(names) == 0: // a revision, without a condition; of a schedule that is 0
			if !strings.HasSuffix(call, "_schedule") {
				v.SetUint(client.AnyRevision)
			}
		default:
			err = decode(v, a[names[0]])
			names = names[1:]
		}
		if err != nil {
			return nil, err
		}
		in = append(in, v)
	}
	return in, nil
}

// removed are the names of the settings that are null.
func removed(settings json.RawMessage) []reflect.Value {
	var given args
	_ = json.Unmarshal(settings, &given) // it was decoded before
	var names []reflect.Value
	for name, value := range given {
		if string(value) == "null" {
			names = append(names, reflect.ValueOf(name))
		}
	}
	return names
}

// decode decodes an argument: a struct of the wire as JSON, another by the names of its members.
func decode(v reflect.Value, text json.RawMessage) error {
	if text == nil {
		return nil
	}
	switch p := v.Addr().Interface().(type) {
	case *time.Duration:
		var d client.Duration
		err := json.Unmarshal(text, &d)
		*p = d.Duration
		return err
	case *client.Backoff:
		if json.Unmarshal(text, &p.Delays) == nil {
			return nil
		}
		p.Delays = nil
	}
	switch {
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return decode(v.Elem(), text)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		var items []json.RawMessage
		if err := json.Unmarshal(text, &items); err != nil {
			return err
		}
		v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
		for i, item := range items {
			if err := decode(v.Index(i), item); err != nil {
				return err
			}
		}
		return nil
	case v.Kind() == reflect.Struct && !ofWire(v.Type()):
		var a args
		if err := json.Unmarshal(text, &a); err != nil {
			return err
		}
		return fill(v, a)
	}
	return json.Unmarshal(text, v.Addr().Interface())
}

// ofWire reports whether a type has the names of the HTTP API.
func ofWire(t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return true
	}
	for f := range t.Fields() {
		if f.Tag.Get("json") != "" {
			return true
		}
	}
	return false
}

// fill sets the members of a struct that are given.
func fill(v reflect.Value, a args) error {
	whole, err := json.Marshal(a)
	if err != nil || ofWire(v.Type()) {
		return errors.Join(err, json.Unmarshal(whole, v.Addr().Interface()))
	}
	for f, member := range v.Fields() {
		switch f.Name {
		case "Body":
			if a["body"] != nil || a["body_base64"] != nil {
				err = decode(member, whole)
			}
		case "NeverExpire":
			member.SetBool(string(a["expires_at"]) == `"never"`)
		case "ExpiresAt":
			if string(a["expires_at"]) != `"never"` {
				err = decode(member, a["expires_at"])
			}
		case "AtOnce":
			member.SetBool(string(a["delay"]) == "0")
		case "Bodies":
			err = decode(member, a["body"])
		case "Size":
			err = decode(member, a["page"])
		default:
			if f.Anonymous {
				err = fill(member, a)
				break
			}
			for name, text := range a {
				if isNamed(f.Name, name) {
					err = decode(member, text)
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// results makes one result of those of a method: nil, a value, or a list of several.
func results(out []reflect.Value) (any, error) {
	if last := len(out) - 1; out[last].Type() == reflect.TypeFor[error]() {
		if err, _ := out[last].Interface().(error); err != nil {
			return nil, err
		}
		out = out[:last]
	}
	switch len(out) {
	case 0:
		return nil, nil
	case 1:
		return plain(out[0])
	}
	list := make([]any, len(out))
	for i, v := range out {
		list[i] = v.Interface()
	}
	return plain(reflect.ValueOf(list))
}

// plain is a result as the harness reads it.
func plain(v reflect.Value) (any, error) {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() {
		return nil, nil
	}
	if err, is := v.Interface().(error); is {
		return failure(err), nil
	}
	list := []any{}
	add := func(item reflect.Value) error {
		p, err := plain(item)
		list = append(list, p)
		return err
	}
	switch {
	case v.Kind() == reflect.Func: // an iter.Seq2
		for item, failed := range v.Seq2() {
			if err, _ := failed.Interface().(error); err != nil {
				return nil, err
			}
			if err := add(item); err != nil {
				return nil, err
			}
		}
		return list, nil
	case v.Kind() == reflect.Slice:
		for _, item := range v.Seq2() {
			if err := add(item); err != nil {
				return nil, err
			}
		}
		return list, nil
	case v.Kind() != reflect.Struct:
		return v.Interface(), nil
	}
	if e := v.FieldByName("Err"); e.IsValid() { // of an item of a batch
		if e.IsNil() {
			return plain(v.Field(0))
		}
		return plain(e)
	}
	if ofWire(v.Type()) {
		return v.Interface(), nil
	}
	members := object{}
	for f, member := range v.Fields() {
		members[strings.ToLower(f.Name)] = member.Interface()
	}
	return members, nil
}
