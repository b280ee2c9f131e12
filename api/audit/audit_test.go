package audit

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func lines(t *testing.T, path string) (records []Record) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		var r Record
		require.NoError(t, json.Unmarshal([]byte(line), &r), line)
		records = append(records, r)
	}
	return records
}

func TestRecordsAreLinesOfJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l, err := Open(path, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	l.Add(Record{Principal: "ops", Remote: "10.0.0.1:5", Via: "http", Call: "POST /v1/topics/{topic}/purge", Resource: "line\nbreak", Verb: "manage", Outcome: Done})
	l.Add(Record{Outcome: Denied, Resource: strings.Repeat("ä", 10_000) + "\xff", Reason: "no token"})
	l.Close()
	l.Close()

	got := lines(t, path)
	require.Len(t, got, 2)
	require.Equal(t, "ops", got[0].Principal)
	require.Equal(t, "line\nbreak", got[0].Resource)
	require.False(t, got[0].Time.IsZero())
	require.Less(t, len(got[1].Resource), maxText+10)
	about, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), about.Mode().Perm())
}

func TestAFileThatWasRenamedIsOpenedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l, err := Open(path, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	l.Add(Record{Principal: "first"})
	require.Eventually(t, func() bool { return len(lines(t, path)) == 1 }, waitTime, waitStep)
	require.NoError(t, os.Rename(path, path+".1"))
	l.Reopen()
	require.Eventually(t, func() bool { _, err := os.Stat(path); return err == nil }, waitTime, waitStep)
	l.Add(Record{Principal: "second"})
	l.Close()
	require.Equal(t, "first", lines(t, path+".1")[0].Principal)
	require.Equal(t, "second", lines(t, path)[0].Principal)
}

// A record that does not fit is counted, and nobody waits.
func TestTheQueueIsBounded(t *testing.T) {
	l := &Log{queue: make(chan Record, 2)}
	for range 5 {
		l.Add(Record{})
	}
	require.EqualValues(t, 3, l.dropped.Load())
}

func TestFailuresAreCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l, err := Open(path, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NoError(t, l.file.Close()) // before the first record, which the goroutine waits for
	l.Add(Record{})
	l.Close()
	require.EqualValues(t, 1, testutil.ToFloat64(l))
}

func TestWithoutAFileNothingIsWritten(t *testing.T) {
	var l *Log
	l.Add(Record{})
	l.Reopen()
	l.Close()
	_, err := Open(filepath.Join(t.TempDir(), "none", "audit.log"), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "--audit-log")
}

const (
	waitTime = time.Minute
	waitStep = 5 * time.Millisecond
)
