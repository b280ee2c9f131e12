package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// BackupOptions are the options of a backup. The zero value is usable.
type BackupOptions struct {
	// Rate of the backup, in bytes a second: at least 64 KiB, and enough to end within 12 h;
	// 0: without limit.
	Rate int64
	// Stale takes what the node has now, without a leader. Otherwise the backup has everything
	// that was acknowledged before the call.
	Stale bool
	// Base makes the backup incremental, if the node that makes it has the store that the base is
	// of. It is the base as text, as docs/http-reference.md has it; tarry backup --since makes it of a
	// file.
	Base []byte
}

// errBackupSilent ends a backup whose node sends nothing.
var errBackupSilent = errors.New("it has fallen silent")

// Open opens a stream of a backup, which the caller must close. A backup is complete only if
// it has its end, which package cluster/backup and the command tarry backup verify check. The
// first of the client's addresses whose node can serve makes it; after its first byte there is no
// retry. It blocks until the node begins.
func (c Backups) Open(ctx context.Context, o BackupOptions) (io.ReadCloser, error) {
	query := url.Values{}
	if o.Rate != 0 {
		query.Set("rate", strconv.FormatInt(o.Rate, 10))
	}
	if o.Stale {
		query.Set("consistency", "stale")
	}
	path := "/v1/cluster/backup"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	c.client.meet(ctx)
	body, _, err := c.client.openStream(ctx, c.client.nodes.asGiven(), path, o.Base)
	return body, err
}

// openStream opens a stream of the first of some nodes that can serve it, and returns its address.
func (c *Client) openStream(ctx context.Context, nodes []string, path string, base []byte) (stream io.ReadCloser, from string, err error) {
	t := &try{client: c, nodes: func() []string { return nodes }, repeat: true} // one round: its end has passed
	t.attempt = func(ctx context.Context, node string) (failure *Error) {
		from = node
		stream, failure = c.openBackup(ctx, node, path, base)
		return failure
	}
	if err := t.run(ctx); err != nil {
		return nil, "", err
	}
	return stream, from, nil
}

// openBackup asks one node.
func (c *Client) openBackup(ctx context.Context, node, path string, base []byte) (io.ReadCloser, *Error) {
	ctx, cancel := context.WithCancelCause(ctx)
	ctx, sent := traced(ctx)
	method := http.MethodGet
	if base != nil {
		method = http.MethodPost
	}
	q, failure := c.newRequest(ctx, method, node, path, base)
	if failure != nil {
		cancel(nil)
		return nil, failure
	}
	if base != nil {
		q.Header.Set("Content-Type", "text/plain")
	}
	b := &backupBody{timeout: c.timeout + backupSilence, cancel: cancel}
	b.silence = time.AfterFunc(b.timeout, func() { cancel(errBackupSilent) })
	answer, err := c.http.Do(q)
	if err != nil {
		defer b.end()
		return nil, connectionError(ctx, node, err, sent.Load())
	}
	b.ReadCloser = answer.Body
	c.nodes.replied(node, answer.Header.Get(headerLeader))
	if answer.StatusCode != http.StatusOK {
		defer func() { _ = b.Close() }() // it was only read
		return nil, readReply(ctx, node, answer, maxErrorReply, new(done))
	}
	return b, nil
}

// backupSilence is how long a node may be silent beside the time of any call: it waits for a
// leader, and makes pauses of 16 s at the lowest rate.
const backupSilence = 2 * time.Minute

// backupBody is the body of a backup, which ends when the node falls silent.
type backupBody struct {
	io.ReadCloser
	timeout time.Duration
	silence *time.Timer
	cancel  context.CancelCauseFunc
}

func (b *backupBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.silence.Reset(b.timeout)
	return n, err
}

func (b *backupBody) end() {
	b.silence.Stop()
	b.cancel(nil)
}

// Close ends the backup, if it has not ended.
func (b *backupBody) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

// RestoreOptions are the options of a restore into a running cluster. The zero value is usable.
type RestoreOptions struct {
	// FromNow makes every delay longer by the time that has passed since the backup.
	FromNow bool
	// ResetAuth removes all tokens. Otherwise those of the running cluster stay.
	ResetAuth bool
	// DryRun only checks the backup, and counts.
	DryRun bool
	// Cluster is the id that the cluster must have; empty: any.
	Cluster string
}

// Restored is what a restore into a running cluster has done, or would do.
type Restored struct {
	DryRun bool `json:"dry_run"`
	// Index is the entry of the log from which on the cluster has the state of the backup; 0 for a
	// dry run.
	Index         uint64         `json:"index"`
	BackupCluster string         `json:"backup_cluster"`
	BackupIndex   uint64         `json:"backup_index"`
	BackupAt      time.Time      `json:"backup_at"`
	Shift         Duration       `json:"shift"` // by how much delays are longer
	Before        RestoredCounts `json:"before"`
	After         RestoredCounts `json:"after"`
	Tokens        int            `json:"tokens"` // afterwards
}

// RestoredCounts are the numbers of topics, and of jobs by state.
type RestoredCounts struct {
	Topics   uint64 `json:"topics"`
	Delayed  uint64 `json:"delayed"`
	Ready    uint64 `json:"ready"`
	Reserved uint64 `json:"reserved"`
	Dead     uint64 `json:"dead"`
	Retained uint64 `json:"retained"`
}

// Restore replaces the state of the running cluster by the backup that from gives, whole: not an
// incremental one. It is sent to the leader, once. It blocks until a majority has the state.
// An error reports whether the state was replaced.
func (c Backups) Restore(ctx context.Context, from io.Reader, o RestoreOptions) (Restored, error) {
	query := url.Values{}
	for name, set := range map[string]bool{"from_now": o.FromNow, "dry_run": o.DryRun} {
		if set {
			query.Set(name, "true")
		}
	}
	if o.ResetAuth {
		query.Set("auth", "reset")
	}
	if o.Cluster != "" {
		query.Set("cluster", o.Cluster)
	}
	if _, err := c.client.Cluster().Members(ctx); err != nil { // the reply names the leader, which is then asked first
		return Restored{}, err
	}
	out, failure := c.client.sendBackup(ctx, c.client.nodes.order()[0], "/v1/cluster/restore?"+query.Encode(), from)
	if failure != nil {
		return Restored{}, failure
	}
	return out, nil
}

// sendBackup sends a backup to a node.
func (c *Client) sendBackup(ctx context.Context, node, path string, from io.Reader) (out Restored, failure *Error) {
	ctx, sent := traced(ctx)
	q, failure := c.newRequest(ctx, http.MethodPost, node, path, nil)
	if failure != nil {
		return out, failure
	}
	body := &wholeBody{from: from}
	q.Body, q.ContentLength = io.NopCloser(body), -1
	q.Header.Set("Content-Type", "application/octet-stream")
	answer, err := c.http.Do(q)
	if err != nil {
		failure = connectionError(ctx, node, err, sent.Load())
		if !body.abandon() && failure.Unknown {
			failure.Code, failure.Unknown = CodeNotApplied, false
		}
		return out, failure
	}
	defer func() { _ = answer.Body.Close() }()
	failure = readReply(ctx, node, answer, maxReply, &out)
	return out, failure
}

// wholeBody is the body of a request that a node takes only whole. It knows whether the node can
// have its end.
type wholeBody struct {
	from io.Reader

	mu               sync.Mutex
	whole, abandoned bool
}

// Read implements io.Reader.
func (b *wholeBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.abandoned {
		return 0, errors.New("the request has failed")
	}
	b.whole = b.whole || errors.Is(err, io.EOF)
	return n, err
}

// abandon ends the body, and reports whether its end may have been sent.
func (b *wholeBody) abandon() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.abandoned = true
	return b.whole
}

// ScheduledBackups is the backups that the cluster has made by itself.
type ScheduledBackups struct {
	Backups []ScheduledBackup `json:"backups"` // the newest first
	Nodes   []NodeBackups     `json:"nodes"`
}

// ScheduledBackup is a file in the --backup-dir of one node or of several, which may share it.
type ScheduledBackup struct {
	Name      string    `json:"name"`
	Index     uint64    `json:"index"` // it has everything up to this entry of the log
	PlannedAt time.Time `json:"planned_at"`
	TakenAt   time.Time `json:"taken_at,omitzero"` // zero: its header cannot be read
	Bytes     int64     `json:"bytes"`
	Base      string    `json:"base,omitempty"` // the file that it builds on; empty: it is whole, or its header cannot be read
	// Verified: it was read back when it was made, and still has its beginning and its end, as
	// have those that it builds on.
	Verified bool     `json:"verified"`
	Problem  string   `json:"problem,omitempty"` // why it is not verified
	Nodes    []string `json:"nodes"`
}

// NodeBackups is what one node replied about its scheduled backups.
type NodeBackups struct {
	ID        string `json:"id"`
	Scheduled bool   `json:"scheduled"`       // it has a --backup-schedule
	More      int    `json:"more"`            // older backups that it did not list
	Error     string `json:"error,omitempty"` // why it did not reply, or cannot use its directory
}

// Scheduled lists the scheduled backups of all nodes. It needs no leader.
func (c Backups) Scheduled(ctx context.Context) (ScheduledBackups, error) {
	return read[ScheduledBackups](ctx, c.client, "/v1/cluster/backups")
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
