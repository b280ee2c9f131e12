package client

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A node replaces nothing before it has the end of a backup, so an error before that is no doubt.
func TestARestoreThatWasNotSentWholeIsKnownNotToBeDone(t *testing.T) {
	for _, c := range []struct {
		name    string
		whole   bool
		unknown bool
	}{{"interrupted while it is sent", false, false}, {"interrupted after it was sent", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v1/cluster/restore" {
					_, _ = io.WriteString(w, `{"success":true,"members":[]}`)
					return
				}
				if c.whole {
					_, _ = io.Copy(io.Discard, r.Body)
				} else {
					_, _ = io.ReadFull(r.Body, make([]byte, 4))
				}
				cancel()
				<-ended
			}))
			defer s.Close()
			defer close(ended)
			cl, err := New([]string{s.URL})
			require.NoError(t, err)
			defer cl.Close()
			var body io.Reader = zeros{} // it has no end
			if c.whole {
				body = strings.NewReader("all of it")
			}
			_, err = cl.Backups().Restore(ctx, body, RestoreOptions{})
			var failed *Error
			require.ErrorAs(t, err, &failed)
			require.Equal(t, c.unknown, failed.Unknown, "%v", err)
			if !c.unknown {
				require.Equal(t, CodeNotApplied, failed.Code)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
