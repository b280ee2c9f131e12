package api

import (
	"context"
	"io"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/api/apitest"
	"tarry/job"
)

// endlessBackups are backups that end with their context.
type endlessBackups struct {
	apitest.Operator
	begun chan struct{}
}

func (o *endlessBackups) Backup(ctx context.Context, to io.Writer, _ job.BackupOptions) error {
	if _, err := io.WriteString(to, "a"); err != nil {
		return err
	}
	o.begun <- struct{}{}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Minute):
		return nil
	}
}

// A backup has all jobs and may take hours.
func TestABackupEndsWithItsToken(t *testing.T) {
	operator := &endlessBackups{begun: make(chan struct{})}
	r := newClosedRig(t, func(o *Options) { o.Operator = operator })
	r.mode("enforce")
	token := r.make("backup", `{"topics":["*"],"verbs":["operate"]}`)
	ended := make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		r.with(token, "GET", backupPath, "")
	}()
	<-operator.begun
	require.Equal(t, 200, r.with(r.root, "DELETE", "/v1/tokens/backup", "").Code)
	require.NotNil(t, <-ended, "the connection is broken, so that nobody takes what has arrived for a backup")
}

// slowBody arrives once the token is revoked.
type slowBody struct {
	text   string
	revoke func()
	read   bool
}

func (b *slowBody) Read(to []byte) (int, error) {
	if b.read {
		return 0, io.EOF
	}
	b.read = true
	b.revoke()
	return copy(to, b.text), nil
}

// Only the node decides about these calls, so it decides again when it has read the request.
func TestACallToOperateIsRefusedIfItsTokenIsRevokedWhileItArrives(t *testing.T) {
	operator := &apitest.Operator{}
	r := newClosedRig(t, func(o *Options) { o.Operator = operator })
	r.mode("enforce")
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/v1/cluster/transfer-leadership", `{"id":"n2"}`},
		{"POST", "/v1/cluster/join", `{"addresses":["host:7302"]}`},
		{"DELETE", "/v1/cluster/members/n3", `{}`},
		{"POST", "/v1/cluster/verify", `{}`},
		{"POST", "/v1/cluster/drain", `{}`},
		{"POST", "/v1/cluster/leave", `{}`},
	} {
		token := r.make("operator", `{"topics":["*"],"verbs":["operate"]}`)
		body := &slowBody{text: c.body, revoke: func() {
			require.Equal(t, 200, r.with(r.root, "DELETE", "/v1/tokens/operator", "").Code)
		}}
		q := httptest.NewRequest(c.method, c.path, body)
		q.ContentLength = int64(len(c.body))
		q.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, q)
		refused(t, w, 403, job.CodeForbidden, "revoked")
		require.Empty(t, operator.Calls(), strconv.Quote(c.path))
	}
}
