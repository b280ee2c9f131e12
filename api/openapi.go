package api

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// The description of the API for programs, as OpenAPI 3.1: GET /v1/openapi.json, and
// docs/openapi.yaml, which a test writes. Paths, methods and query parameters are those of
// the routes (routes.go); what calls take and give, and what the fields mean, is in
// openapi_calls.go, openapi_tables.go, job.Fields and job.Settings. Tests hold every example of the docs and
// every call of the API's own tests against it.

// object is a JSON object.
type object = map[string]any

// OpenAPI returns the description as JSON.
func OpenAPI() []byte {
	b, err := json.Marshal(describeAPI((&server{}).routes()), json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("the OpenAPI description does not encode: %v", err))
	}
	return b
}

// openAPI handles GET /v1/openapi.json.
func (s *server) openAPI(x *call) error {
	description := s.openapi()
	if err := x.claim(int64(len(description))); err != nil {
		return err
	}
	x.json.b = append(x.json.b, description...)
	return nil
}

func describeAPI(routes []route) object {
	d := &describer{schemas: object{}}
	paths := object{}
	for _, rt := range routes {
		for method, e := range rt.methods {
			path := rt.template()
			doc, found := calls[method+" "+path]
			if !found {
				continue // another method of a job with that id; a test looks for the rest
			}
			if paths[path] == nil {
				paths[path] = object{}
			}
			paths[path].(object)[strings.ToLower(method)] = d.call(path, e, doc)
		}
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

// call describes one method of a path.
func (d *describer) call(path string, e endpoint, doc callDoc) object {
	var parameters []any
	for _, m := range inPath.FindAllStringSubmatch(path, -1) {
		parameters = append(parameters, object{
			"name": m[1], "in": "path", "required": true, "schema": d.field("Path", m[1], "string"), "description": helpOf("Path", m[1]),
		})
	}
	for _, name := range e.query {
		if strings.HasSuffix(name, ".") { // all that begin so: the members of an object
			parameters = append(parameters, object{
				"name": name + "NAME", "in": "query", "style": "form", "explode": true, "description": helpOf("Query", name),
				"schema": object{"type": "object", "additionalProperties": object{"type": "string"}},
			})
			continue
		}
		in := "Query"
		if _, own := fieldDocs[doc.name+"."+name]; own {
			in = doc.name
		}
		parameters = append(parameters, object{
			"name": name, "in": "query", "schema": d.field(in, name, queryTypes[name]), "description": helpOf(in, name),
			"required": slices.Contains(doc.required, name) && !e.body,
		})
	}
	for _, name := range doc.headers {
		parameters = append(parameters, object{"name": name, "in": "header", "schema": object{"type": "string"}, "description": helpOf("Header", name)})
	}
	made := object{
		"operationId": doc.name, "summary": doc.summary, "tags": []any{tagOf(path)},
		"responses": d.responses(doc),
	}
	if parameters != nil {
		made["parameters"] = parameters
	}
	switch {
	case doc.sends != "":
		made["requestBody"] = object{"required": true, "content": object{doc.sends: object{"schema": object{"type": "string", "format": "binary"}}}}
	case e.body:
		made["requestBody"] = object{
			"required": len(doc.required) > 0,
			"content":  object{"application/json": object{"schema": d.request(doc)}},
		}
	}
	return made
}

func (d *describer) responses(doc callDoc) object {
	kind := "application/json"
	if doc.content != "" {
		kind = doc.content
	}
	made := object{"default": object{
		"description": "The call failed: see code.",
		"content":     object{"application/json": object{"schema": d.ref("Error")}},
	}}
	for _, status := range strings.Fields(doc.statuses + " 200")[:max(1, len(strings.Fields(doc.statuses)))] {
		schema := object{"type": "string"}
		if doc.reply != "" {
			schema = d.ref(doc.reply)
		}
		made[status] = object{"description": statusText(status), "content": object{kind: object{"schema": schema}}}
	}
	return made
}

func statusText(status string) string {
	switch status {
	case "201":
		return http.StatusText(http.StatusCreated)
	case "503":
		return http.StatusText(http.StatusServiceUnavailable)
	}
	return http.StatusText(http.StatusOK)
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
	case strings.HasPrefix(path, "/v1/jobs"), path == getManyPath:
		return "jobs"
	case path == "/v1/openapi.json", !strings.HasPrefix(path, "/v1/") && path != "/":
		return "node"
	}
	return "consuming"
}
