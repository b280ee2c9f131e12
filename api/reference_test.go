package api

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"tarry/api/openapi"
	"tarry/api/wire"
)

const referencePath = "../docs/http-reference.md"

// schemaDoc is a schema of the description, as far as the page needs it.
type schemaDoc struct {
	Ref              string `json:"$ref"`
	Type             any
	Format           string
	Description      string
	Minimum, Maximum *float64
	MaxLength        int // of a text; its limit is as many bytes
	MaxItems         int
	Enum             []string
	Items            *schemaDoc
	OneOf            []*schemaDoc
	Properties       map[string]*schemaDoc
	Required         []string
}

type operationDoc struct {
	Summary    string
	Tags       []string
	Parameters []struct {
		Name, In, Description string
		Required              bool
		Schema                *schemaDoc
	}
	RequestBody *struct {
		Content map[string]struct{ Schema *schemaDoc }
	}
	Responses map[string]struct {
		Description string
		Content     map[string]struct{ Schema *schemaDoc }
	}
}

type apiDoc struct {
	Paths      map[string]map[string]*operationDoc
	Components struct{ Schemas map[string]*schemaDoc }
}

// What is generated of a call: the bold line below its heading, and what follows its text.
var (
	generatedSummary = regexp.MustCompile(`^\n\*\*.*\*\*\n`)
	generatedFields  = regexp.MustCompile(`(?m)^(\| parameter \| in \||Request:|Reply:)`)
)

// The text and the order of the calls are the page's own.
func TestTheReferenceHasWhatOpenAPISays(t *testing.T) {
	var d apiDoc
	require.NoError(t, json.Unmarshal(openapi.JSON(), &d, json.MatchCaseInsensitiveNames(true)))
	text, err := os.ReadFile(referencePath)
	require.NoError(t, err)
	page, _, found := strings.Cut(string(text), "\n## Objects\n")
	require.True(t, found)
	parts := strings.Split(page, "\n### `")
	described := 0
	for i, part := range parts[1:] {
		name, part, _ := strings.Cut(part, "`\n")
		text, chapter, last := strings.Cut(part, "\n## ")
		method, path, _ := strings.Cut(name, " ")
		if op := d.Paths[path][strings.ToLower(method)]; op != nil {
			text = op.described(text)
			described++
		}
		if last {
			text += "\n## " + chapter
		}
		parts[1+i] = name + "`\n" + text
	}
	require.Equal(t, len(wire.Calls), described, "each call has a heading")
	written := strings.Join(parts, "\n### `") + d.objects()
	if *update {
		require.NoError(t, os.WriteFile(referencePath, []byte(written), 0o644))
		return
	}
	require.Equal(t, written, string(text), "go test ./api -run OpenAPI -update")
}

// described returns the text of a call between what is generated of it.
func (op *operationDoc) described(text string) string {
	if summary := generatedSummary.FindString(text); summary != "" {
		text = text[len(summary):]
	}
	if fields := generatedFields.FindStringIndex(text); fields != nil {
		text = text[:fields[0]]
	}
	if text = strings.Trim(text, "\n"); text != "" {
		text = "\n" + text + "\n"
	}
	return "\n**" + op.Summary + "**\n" + text + op.fields()
}

// fields describes the parameters, the request and the reply.
func (op *operationDoc) fields() string {
	b := new(strings.Builder)
	if len(op.Parameters) > 0 {
		b.WriteString("\n| parameter | in | values | meaning |\n|---|---|---|---|\n")
	}
	for _, p := range op.Parameters {
		values := valuesOf(p.Schema)
		if values == "object" { // each member is a parameter
			values = "text"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", boldName(p.Name, p.Required), p.In, values, cell(p.Description))
	}
	if op.RequestBody != nil {
		schema := op.RequestBody.Content["application/json"].Schema
		if schema == nil {
			fmt.Fprintf(b, "\nRequest: `%s`.\n", slices.Sorted(maps.Keys(op.RequestBody.Content))[0])
		} else if schema.Ref == "" && len(schema.Properties) > 0 {
			b.WriteString("\nRequest:\n")
			fieldsOf(b, schema)
		} else {
			fmt.Fprintf(b, "\nRequest: %s.\n", valuesOf(schema))
		}
	}
	var replies []string
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		r := op.Responses[status]
		for _, content := range slices.Sorted(maps.Keys(r.Content)) {
			if status == "default" {
				continue
			}
			reply := status + " " + valuesOf(r.Content[content].Schema)
			if content != "application/json" {
				reply += " (`" + content + "`)"
			}
			replies = append(replies, reply)
		}
	}
	fmt.Fprintf(b, "\nReply: %s.\n", strings.Join(replies, ", or "))
	return b.String()
}

// objects describes the objects that calls take and give.
func (d *apiDoc) objects() string {
	var b strings.Builder
	b.WriteString("\n## Objects\n")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.Components.Schemas[name]
		fmt.Fprintf(&b, "\n### %s\n", name)
		if s.Description != "" {
			fmt.Fprintf(&b, "\n%s\n", s.Description)
		}
		fieldsOf(&b, s)
		for _, form := range s.OneOf {
			if len(form.Properties) == 0 {
				fmt.Fprintf(&b, "\n- %s: %s\n", valuesOf(form), form.Description)
				continue
			}
			b.WriteString("\n- an object:\n")
			fieldsOf(&b, form)
		}
	}
	return b.String()
}

func fieldsOf(b *strings.Builder, s *schemaDoc) {
	if len(s.Properties) == 0 {
		return
	}
	b.WriteString("\n| field | values | meaning |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		f := s.Properties[name]
		fmt.Fprintf(b, "| %s | %s | %s |\n", boldName(name, slices.Contains(s.Required, name)), valuesOf(f), cell(f.Description))
	}
}

func boldName(name string, required bool) string {
	if required {
		return "**`" + name + "`**"
	}
	return "`" + name + "`"
}

// valuesOf says what a field may be.
func valuesOf(s *schemaDoc) string {
	switch {
	case s.Ref != "":
		name := s.Ref[strings.LastIndex(s.Ref, "/")+1:]
		return "[" + name + "](#" + strings.ToLower(name) + ")"
	case len(s.Enum) > 0:
		return "`" + strings.Join(s.Enum, "`, `") + "`"
	case s.Items != nil && s.MaxItems > 0:
		return fmt.Sprintf("list of up to %d of %s", s.MaxItems, valuesOf(s.Items))
	case s.Items != nil:
		return "list of " + valuesOf(s.Items)
	case s.MaxLength > 0:
		return fmt.Sprintf("text, up to %d bytes", s.MaxLength)
	case len(s.OneOf) > 0 && s.OneOf[0].Format == "date-time":
		return "time"
	case len(s.OneOf) > 0:
		var forms []string
		for _, form := range s.OneOf {
			forms = append(forms, valuesOf(form))
		}
		return strings.Join(forms, ", or ")
	case s.Format == "date-time":
		return "time"
	}
	kind, ok := s.Type.(string)
	if types, _ := s.Type.([]any); len(types) == 2 && types[1] == "null" {
		other := *s
		other.Type = types[0]
		return valuesOf(&other) + ", or null"
	}
	if !ok {
		return "any JSON value"
	}
	kind = map[string]string{"string": "text", "boolean": "true or false", "integer": "whole number"}[kind]
	if kind == "" {
		kind = s.Type.(string)
	}
	switch number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }; {
	case s.Minimum != nil && s.Maximum != nil:
		return kind + ", " + number(*s.Minimum) + " to " + number(*s.Maximum)
	case s.Minimum != nil && *s.Minimum != 0:
		return kind + ", " + number(*s.Minimum) + " or more"
	}
	return kind
}

// cell is a text that may stand in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }
