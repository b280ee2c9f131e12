package archive

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
	"tarry/job"
)

// exportVersion is the version of the lines that export --all writes. Import reads all
// versions up to it, in every later release. docs/formats.md describes them.
const exportVersion = 1

// exportHead is the first line of an export.
type exportHead struct {
	Version        int       `json:"tarry_export"`
	At             time.Time `json:"at"`      // when it began
	Release        string    `json:"release"` // that wrote it
	ClusterVersion uint32    `json:"cluster_version"`
}

// The kinds of the other lines: the values of their member type.
const (
	kindTopic     = "topic"
	kindNamespace = "namespace"
	kindSchedule  = "schedule"
	kindJob       = "job"
	kindEnd       = "end"
)

// topicLine is a topic that has settings or is paused.
type topicLine struct {
	Type        string           `json:"type"`
	Topic       string           `json:"topic"`
	Settings    *client.Settings `json:"settings,omitzero"`
	Paused      bool             `json:"paused,omitzero"`
	PausedUntil time.Time        `json:"paused_until,omitzero"` // zero: until it is resumed
}

// namespaceLine is a namespace, without what it holds.
type namespaceLine struct {
	Type string `json:"type"`
	Name string `json:"namespace"`
	client.NamespaceSpec
}

// scheduleLine is a schedule, without its runs.
type scheduleLine struct {
	Type string `json:"type"`
	Name string `json:"schedule"`
	client.Schedule
	Paused bool `json:"paused,omitzero"`
}

// exportedJob is a job. The id of one that a node named begins with $.
type exportedJob struct {
	Type string `json:"type"`
	client.ImportedJob
}

// exportCounts says how many lines of each kind there are.
type exportCounts struct {
	Topics     int `json:"topics"`
	Namespaces int `json:"namespaces"`
	Schedules  int `json:"schedules"`
	Jobs       int `json:"jobs"`
}

// exportEnd is the last line: without it the file was cut.
type exportEnd struct {
	Type string `json:"type"`
	exportCounts
}

// of returns the count of a kind.
func (c *exportCounts) of(kind string) *int {
	return map[string]*int{kindTopic: &c.Topics, kindNamespace: &c.Namespaces, kindSchedule: &c.Schedules, kindJob: &c.Jobs}[kind]
}

// kinds are the kinds of lines, as flags name them.
var kinds = []struct{ kind, name string }{{kindTopic, "topics"}, {kindNamespace, "namespaces"}, {kindSchedule, "schedules"}, {kindJob, "jobs"}}

// String returns the counts for people.
func (c exportCounts) String() string {
	return fmt.Sprintf("%d topics, %d namespaces, %d schedules, %d jobs", c.Topics, c.Namespaces, c.Schedules, c.Jobs)
}

// decodeHead reads the first line. The error goes behind the name of the file.
func decodeHead(line []byte) (exportHead, error) {
	var head exportHead
	if err := json.Unmarshal(line, &head); err != nil || head.Version < 1 {
		return head, cli.LineError{Err: fmt.Errorf("line 1 has no tarry_export: this is no file of tarry export --all. tarry add --file adds jobs from other files")}
	}
	if head.Version > exportVersion {
		return head, cli.LineError{Err: fmt.Errorf("line 1: tarry_export is %d, a format of a newer release (%.40s wrote it); this one reads up to %d. Import it with that release", head.Version, head.Release, exportVersion)}
	}
	return head, nil
}

// decodeExported reads a line behind the first: a *topicLine, *namespaceLine, *scheduleLine,
// *exportedJob or *exportEnd. The error goes behind the line's number.
func decodeExported(line []byte) (kind string, v any, err error) {
	var of struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(line, &of); err != nil {
		return "", nil, fmt.Errorf("%s", lineFault(line, err, "line of an export", "those of docs/formats.md"))
	}
	switch of.Type {
	case kindTopic:
		v = new(topicLine)
	case kindNamespace:
		v = new(namespaceLine)
	case kindSchedule:
		v = new(scheduleLine)
	case kindJob:
		v = new(exportedJob)
	case kindEnd:
		v = new(exportEnd)
	case "":
		return "", nil, fmt.Errorf(": type is missing; it is topic, namespace, schedule, job or end")
	default:
		return "", nil, fmt.Errorf(": type is %.40q; this release knows topic, namespace, schedule, job and end", of.Type)
	}
	if err := json.Unmarshal(line, v, json.RejectUnknownMembers(true)); err != nil {
		return "", nil, fmt.Errorf("%s", lineFault(line, err, of.Type, "those of docs/formats.md"))
	}
	if err := checkExported(v); err != nil {
		return "", nil, fmt.Errorf(": %w", err)
	}
	return of.Type, v, nil
}

// checkExported checks the rules by which a line is understood. The node that imports it checks
// those of its values.
func checkExported(v any) error {
	limits := job.Newest()
	switch l := v.(type) {
	case *topicLine:
		return limits.CheckTopic("topic", l.Topic)
	case *namespaceLine:
		return limits.CheckNamespaceName("namespace", l.Name)
	case *scheduleLine:
		return job.CheckScheduleName("schedule", l.Name)
	case *exportedJob:
		return checkExportedJob(limits, &l.ImportedJob)
	}
	return nil
}

func checkExportedJob(limits *job.Limits, j *client.ImportedJob) error {
	if err := limits.CheckTopic("topic", j.Topic); err != nil {
		return err
	}
	if err := limits.CheckRefID("id", j.ID); err != nil {
		return err
	}
	switch {
	case j.State != "delayed" && j.State != "ready" && j.State != "dead":
		return job.Invalid("state", "is %.40q; it is delayed, ready or dead", j.State)
	case j.DueAt.IsZero():
		return job.Invalid("due_at", "is missing")
	case len(j.Value) == 0 && j.Base64 == "":
		return job.Invalid("body", "is missing")
	case strings.HasPrefix(j.ID, "$") && j.CreatedAt.IsZero():
		return job.Invalid("created_at", "is missing; a job whose id a node made needs it")
	}
	return nil
}

// sortedNames returns the keys of maps, each once, in order.
func sortedNames[V any](of ...map[string]V) []string {
	var names []string
	for _, m := range of {
		names = slices.AppendSeq(names, maps.Keys(m))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// firstDifference returns the first member, by name, in which two values differ, with what
// each has; empty: none.
func firstDifference(a, b any) (string, error) {
	var both [2]map[string]jsontext.Value
	for i, v := range []any{a, b} {
		text, err := json.Marshal(v, json.Deterministic(true))
		if err != nil {
			return "", err
		}
		if err := json.Unmarshal(text, &both[i]); err != nil {
			return "", err
		}
	}
	for _, name := range sortedNames(both[0], both[1]) {
		if !bytes.Equal(both[0][name], both[1][name]) {
			return fmt.Sprintf("%s is %s here and %s in the file", name, orNone(both[0][name]), orNone(both[1][name])), nil
		}
	}
	return "", nil
}

// orNone is the start of a value.
func orNone(v jsontext.Value) string {
	if v == nil {
		return "not set"
	}
	return fmt.Sprintf("%.100s", v)
}
