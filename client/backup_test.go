package client

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A node pauses for the time of a block; at the lowest rate that must not look like silence.
func TestTheLowestRateOfABackupIsNotSilence(t *testing.T) {
	const pause = 16 * time.Second // TestTheClientKnowsTheLongestPauseOfABackup
	require.Less(t, 4*pause, backupSilence)
}

// The node that --addr names first makes the backup, whoever leads: its operator named it to spare
// the leader, and an incremental backup needs the node of its base.
func TestTheFirstAddressMakesTheBackup(t *testing.T) {
	var asked []string
	node := func(name string, status int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/cluster/backup" {
				asked = append(asked, name)
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"success":false,"code":"not_applied","outcome":"not_applied"}`)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	a, b, c := node("a", http.StatusServiceUnavailable), node("b", http.StatusOK), node("c", http.StatusOK)
	for range 8 { // a client begins with any of its nodes
		asked = nil
		cl, err := New([]string{a, b, c})
		require.NoError(t, err)
		body, err := cl.Backups().Open(t.Context(), BackupOptions{})
		require.NoError(t, err)
		require.NoError(t, body.Close())
		cl.Close()
		require.Equal(t, []string{"a", "b"}, asked)
	}
}
