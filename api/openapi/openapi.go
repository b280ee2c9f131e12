// Package openapi describes the HTTP API for programs, as OpenAPI 3.1, from the calls and the types
// of package wire and the tables job.Fields and job.Settings. From the same come the types of replies
// of the clients for Node and Python: clients.go lists them.
package openapi

import (
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"tarry/api/wire"
)

// object is a JSON object.
type object = map[string]any

// JSON returns the description of the calls.
func JSON() []byte {
	b, err := json.Marshal(describe(wire.Calls), json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("the OpenAPI description does not encode: %v", err))
	}
	return b
}

func describe(calls []wire.Call) object {
	d := &describer{schemas: object{}}
	paths := object{}
	for i := range calls {
		c := &calls[i]
		if paths[c.Path()] == nil {
			paths[c.Path()] = object{}
		}
		paths[c.Path()].(object)[strings.ToLower(c.Method())] = d.call(c)
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title":       "Tarry",
			"version":     "1",
			"description": "A replicated delay queue. Any node serves any request. A member of a request that is null counts as not given, except for body.",
		},
		"servers":    []any{object{"url": "/"}}, // the node that serves it
		"paths":      paths,
		"components": object{"schemas": d.schemas},
	}
}

// describer collects the schemas that calls refer to.
type describer struct{ schemas object }

var inPath = regexp.MustCompile(`\{(\w+)\}`)

func (d *describer) call(c *wire.Call) object {
	var parameters []any
	for _, m := range inPath.FindAllStringSubmatch(c.Path(), -1) {
		f := wire.Field{Type: reflect.TypeFor[string](), Doc: wire.InPath[m[1]]}
		parameters = append(parameters, object{"name": m[1], "in": "path", "required": true, "schema": d.field(f, ofRequest), "description": f.Help})
	}
	for _, f := range fieldsOf(c.Query) {
		if strings.HasSuffix(f.Name, ".") { // all that begin so: the members of an object
			parameters = append(parameters, object{
				"name": f.Name + "NAME", "in": "query", "style": "form", "explode": true, "description": f.Help,
				"schema": object{"type": "object", "additionalProperties": object{"type": "string"}},
			})
			continue
		}
		parameters = append(parameters, object{
			"name": f.Name, "in": "query", "schema": d.field(f, ofRequest), "description": f.Help, "required": f.Required && !c.TakesBody(),
		})
	}
	for _, f := range fieldsOf(c.Headers) {
		parameters = append(parameters, object{"name": f.Name, "in": "header", "schema": object{"type": "string"}, "description": f.Help})
	}
	made := object{"operationId": c.Name, "summary": c.Summary, "tags": []any{tagOf(c.Path())}, "responses": d.responses(c)}
	if parameters != nil {
		made["parameters"] = parameters
	}
	switch {
	case c.Sends != "":
		made["requestBody"] = object{"required": true, "content": object{c.Sends: object{"schema": object{"type": "string", "format": "binary"}}}}
	case c.Request != nil:
		t := reflect.TypeOf(c.Request)
		required := false
		for _, f := range wire.Fields(t) {
			required = required || f.Required
		}
		made["requestBody"] = object{"required": required, "content": object{"application/json": object{"schema": d.ref(t, ofRequest)}}}
	}
	return made
}

func fieldsOf(v any) []wire.Field {
	if v == nil {
		return nil
	}
	return wire.Fields(reflect.TypeOf(v))
}

func (d *describer) responses(c *wire.Call) object {
	kind := "application/json"
	if c.Gives != "" {
		kind = c.Gives
	}
	made := object{"default": object{
		"description": "The call failed: see code.",
		"content":     object{"application/json": object{"schema": d.ref(reflect.TypeFor[wire.Error](), ofItem)}},
	}}
	statuses := c.Status
	if statuses == nil {
		statuses = []int{http.StatusOK}
	}
	for _, status := range statuses {
		schema := object{"type": "string"}
		switch t := reflect.TypeOf(c.Reply); t {
		case nil:
		case reflect.TypeFor[wire.Description]():
			schema = d.ref(t, ofItem)
		default:
			schema = d.ref(t, ofReply)
		}
		made[strconv.Itoa(status)] = object{"description": http.StatusText(status), "content": object{kind: object{"schema": schema}}}
	}
	return made
}

// tagOf groups the calls by what they are about.
func tagOf(path string) string {
	switch {
	case strings.HasPrefix(path, "/v1/topic"), strings.HasPrefix(path, "/v1/forecast"), strings.HasPrefix(path, "/v1/dead"), path == "/v1/stats":
		return "topics"
	case strings.HasPrefix(path, "/v1/schedules"):
		return "schedules"
	case strings.HasPrefix(path, "/v1/tokens"), strings.HasPrefix(path, "/v1/auth"), path == "/v1/whoami":
		return "tokens"
	case strings.HasPrefix(path, "/v1/cluster"):
		return "cluster"
	case strings.HasPrefix(path, "/v1/jobs"), path == "/v1/get":
		return "jobs"
	case path == "/v1/openapi.json", !strings.HasPrefix(path, "/v1/") && path != "/":
		return "node"
	}
	return "consuming"
}
