package wire

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Time is an instant in a reply, in Unix milliseconds.
type Time int64

// TimeFormat is RFC 3339 in UTC with milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// AppendTo appends the instant as JSON.
func (t Time) AppendTo(b []byte) []byte {
	return append(time.UnixMilli(int64(t)).UTC().AppendFormat(append(b, '"'), TimeFormat), '"')
}

// MarshalJSONTo implements json.MarshalerTo.
func (t Time) MarshalJSONTo(enc *jsontext.Encoder) error { return enc.WriteValue(t.AppendTo(nil)) }

// Seconds is a duration in a reply.
type Seconds float64

// SecondsOf returns milliseconds as seconds.
func SecondsOf(ms int64) Seconds { return Seconds(float64(ms) / 1000) }

// MarshalJSONTo implements json.MarshalerTo.
func (s Seconds) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(strconv.AppendFloat(nil, float64(s), 'f', -1, 64))
}

// Any is any JSON value: the body of a job.
type Any jsontext.Value

// Step is the step of a forecast in a query: its name, or a number of seconds.
type Step string

// Failure is why an item of a batch failed.
type Failure struct {
	Code    string `json:"code,omitzero"`
	Error   string `json:"error,omitzero"`
	Field   string `json:"field,omitzero"`
	Outcome string `json:"outcome,omitzero"`
}

type NodeLog struct {
	Node  string   `json:"node"`
	Lines []string `json:"lines" help:"The last 256 KiB of the log since the process began, oldest first, in the format of --log-format."`
}

type LogLevel struct {
	Node  string `json:"node"`
	Level string `json:"level" help:"The lowest level that the node logs." limit:"level"`
}

type Node struct {
	ID                string        `json:"id" help:"The name of the node."`
	Release           string        `json:"release" help:"The release that the node runs."`
	Revision          string        `json:"revision" help:"The commit that it was built from."`
	Go                string        `json:"go" help:"The version of Go that built it."`
	Platform          string        `json:"platform" help:"Its operating system and processor."`
	StartedAt         Time          `json:"started_at,omitzero"`
	Draining          bool          `json:"draining" help:"Whether the node drains."`
	StoreFormat       uint64        `json:"store_format" help:"The format of its state on disk."`
	WireVersion       uint64        `json:"wire_version" help:"The version of what nodes send to each other."`
	BackupFormat      uint64        `json:"backup_format" help:"The format of the backups that it makes."`
	MinClusterVersion uint64        `json:"min_cluster_version"`
	MaxClusterVersion uint64        `json:"max_cluster_version"`
	Settings          []NodeSetting `json:"settings" help:"The settings of the node, in the order of their names."`
}

type NodeSetting struct {
	Name   string `json:"name" help:"The flag that sets it."`
	Value  string `json:"value" help:"Its value, empty if it is hidden."`
	Hidden bool   `json:"hidden,omitzero" help:"Whether it has a value that is not shown, because it may be a secret."`
}

type Readiness struct {
	Code     string   `json:"code,omitzero"`
	Error    string   `json:"error,omitzero"`
	Ready    bool     `json:"ready" help:"Whether this node can serve clients."`
	Reasons  []string `json:"reasons"`
	Warnings []string `json:"warnings"`
	Leader   string   `json:"leader"`
}

type Done struct{}

type Description struct {
	OpenAPI string `json:"openapi" help:"The version of OpenAPI that this is in."`
}

type Error struct {
	Success  bool     `json:"success"`
	Code     string   `json:"code"`
	Error    string   `json:"error"`
	Field    string   `json:"field,omitzero"`
	Outcome  string   `json:"outcome,omitzero"`
	ID       string   `json:"id,omitzero"`
	Value    Any      `json:"value,omitzero"`
	Ready    bool     `json:"ready,omitzero" help:"Of readyz: whether this node can serve clients."`
	Reasons  []string `json:"reasons,omitzero"`
	Warnings []string `json:"warnings,omitzero"`
	Leader   string   `json:"leader,omitzero"`
}
