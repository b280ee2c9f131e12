package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
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
	// of. It is the base as text, as docs/http-api.md has it; tarry backup --since makes it of a
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
func (c *Client) openStream(ctx context.Context, nodes []string, path string, base []byte) (io.ReadCloser, string, error) {
	var last *Error
	for _, node := range nodes {
		body, failure := c.openBackup(ctx, node, path, base)
		if failure == nil {
			return body, node, nil
		}
		last = failure
		if failure.Status == 0 && ctx.Err() == nil {
			c.nodes.failed(node, !failure.unsent)
		}
		if !failure.notDone() && !failure.Unknown {
			break
		}
	}
	if last.Code == CodeUnknown {
		last.Code, last.Unknown = CodeNotApplied, false // it reads
	}
	return nil, "", c.giveUp(last, false, len(nodes))
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
