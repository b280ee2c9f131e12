package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

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
