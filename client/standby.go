package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// The modes of a cluster as a standby.
const (
	StandbyNone      = "none"      // it never was one
	StandbyFollowing = "following" // it only follows its primary
	StandbyPromoted  = "promoted"  // it was one
)

// Standby is what is known of a cluster as a standby.
type Standby struct {
	Mode    string `json:"mode"`
	Primary string `json:"primary"` // id of the cluster that it follows, or followed
	// Index and Term are the last entry of the primary's log whose effects are here.
	Index uint64 `json:"index"`
	Term  uint64 `json:"term"`
	// PrimaryIndex is how far the primary was at the last contact.
	PrimaryIndex uint64 `json:"primary_index"`
	LagEntries   uint64 `json:"lag_entries"`
	// LagSeconds is how long ago it last had everything; nil: unknown. After a promotion it is
	// what it was then.
	LagSeconds    *float64   `json:"lag_seconds,omitempty"`
	LastContactAt *time.Time `json:"last_contact_at,omitempty"`
	CaughtUpAt    *time.Time `json:"caught_up_at,omitempty"`
	PromotedAt    *time.Time `json:"promoted_at,omitempty"`
	Connected     bool       `json:"connected"`
	Source        string     `json:"source"`  // address of the node that sends the log; "": none does
	Problem       string     `json:"problem"` // why it does not follow; "": it does
	Reseed        bool       `json:"reseed"`  // it must be made again from a backup
}

// Standby returns how far a standby is behind its primary.
func (c Cluster) Standby(ctx context.Context) (Standby, error) {
	return read[Standby](ctx, c.client, "/v1/cluster/standby")
}

// PromoteStandby makes a standby take operations of clients, for good, and returns what was known
// of it before. While the primary still sends its log it fails, unless force is set.
func (c Cluster) PromoteStandby(ctx context.Context, force bool) (Standby, error) {
	in := struct {
		Force bool `json:"force,omitzero"`
	}{force}
	return ask[Standby](ctx, c.client, request{method: http.MethodPost, path: "/v1/cluster/standby/promote", in: in, work: OperatorTime})
}

// LogPosition is where a stream of the log begins.
type LogPosition struct {
	Cluster     string // id of the cluster whose log it is
	After, Term uint64 // the last entry that its reader has
}

// Log opens a stream of the log for a standby, in the format of package cluster/logstream, and
// returns the address of the node that sends it. The caller must close it. The first node that can
// serve sends it. It blocks until the node begins.
func (c Backups) Log(ctx context.Context, p LogPosition) (stream io.ReadCloser, node string, err error) {
	query := url.Values{
		"cluster": {p.Cluster}, "index": {strconv.FormatUint(p.After, 10)}, "term": {strconv.FormatUint(p.Term, 10)},
	}
	c.client.meet(ctx)
	return c.client.openStream(ctx, c.client.nodes.order(), "/v1/cluster/log?"+query.Encode(), nil)
}
