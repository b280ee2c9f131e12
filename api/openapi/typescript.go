package openapi

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"tarry/api/wire"
)

// exact are the TypeScript types of fields of which package wire does not know as much.
var exact = map[string]string{
	"Member.role":      `"leader" | "follower"`,
	"PastRun.outcome":  `"started" | "skipped" | "missed" | "refused"`,
	"ScheduleInfo.job": `Schedule["job"]`,
	"Settings.push":    "{ url?: string; secret?: string; hasSecret?: boolean; timeout?: number; concurrency?: number; jobUrls?: boolean }",
}

// given are fields that wire may leave out and a client that asks for them finds.
var given = map[string]bool{
	"Added.due_at": true, "Changed.due_at": true, "Changed.revision": true, "Explanation.due_at": true, "ReservedJob.body": true,
	"DeadTopic.first_died_at": true, "PastRun.planned_at": true, "Clocks.cluster_ahead": true, "NodeClock.offset": true, "NodeClock.within": true,
}

// TypeScript returns the types of replies for clients/node.
func TypeScript() []byte {
	var b bytes.Buffer
	b.WriteString("// What calls return. Made from package api/wire: go test ./api -run OpenAPI -update\n")
	b.WriteString("// Durations are numbers of seconds.\n\nimport { Backoff, Body, Schedule, State } from \"./index.js\";\n")
	names := make(map[reflect.Type]string)
	for _, c := range clientTypes {
		names[reflect.TypeOf(c.of)] = c.name
	}
	for _, c := range clientTypes {
		fields := c.fields()
		parameter := ""
		for _, f := range fields {
			if f.Name == "body" {
				parameter = "<B = Body>"
			}
		}
		fmt.Fprintf(&b, "\n/** %s */\nexport interface %s%s {\n", c.doc, c.name, parameter)
		for _, f := range fields {
			full := c.name + "." + f.Name
			kind, found := exact[full]
			if !found {
				kind = typeScript(f, names)
			}
			mark := ""
			if f.Optional && !given[full] {
				mark = "?"
			}
			fmt.Fprintf(&b, "  /** %s */\n  %s%s: %s;\n", f.Help, camel(f.Name), mark, kind)
		}
		b.WriteString("}\n")
	}
	return b.Bytes()
}

func typeScript(f wire.Field, names map[reflect.Type]string) string {
	switch {
	case f.Name == "state":
		return "State"
	case len(f.Choices) > 0 && f.Type.Kind() == reflect.Slice:
		return "(" + union(f.Choices) + ")[]"
	case len(f.Choices) > 0:
		return union(f.Choices)
	}
	switch f.Type {
	case reflect.TypeFor[wire.Time]():
		return "Date"
	case reflect.TypeFor[wire.Any]():
		return "B"
	case reflect.TypeFor[wire.Backoff]():
		return "Backoff"
	case reflect.TypeFor[map[string]string]():
		return "Record<string, string>"
	}
	if name := names[f.Type]; name != "" {
		return name
	}
	switch f.Type.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int64, reflect.Uint64, reflect.Float64:
		return "number"
	case reflect.Pointer:
		f.Type = f.Type.Elem()
		return typeScript(f, names)
	case reflect.Slice:
		f.Type = f.Type.Elem()
		return typeScript(f, names) + "[]"
	}
	panic(fmt.Sprintf("api/openapi has no type of TypeScript for %s %s", f.Name, f.Type))
}

func union(choices []string) string { return `"` + strings.Join(choices, `" | "`) + `"` }

var afterUnderscore = regexp.MustCompile(`_[a-z]`)

// camel is a name of the HTTP API as JavaScript writes it.
func camel(name string) string {
	return afterUnderscore.ReplaceAllStringFunc(name, func(s string) string { return strings.ToUpper(s[1:]) })
}
