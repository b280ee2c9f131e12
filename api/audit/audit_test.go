package audit

import (
	"fmt"
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
	l.Add(Record{Outcome: Failed, Resource: strings.Repeat("ä", 10_000) + "\xff", Reason: "no token"})
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

// What a terminal or a viewer may take for something else is escaped; what prints is not.
func TestHiddenCharactersAreEscaped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l, err := Open(path, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	const hidden = "\u2028\u2029\u0085\u009b\u202e\u2066\u200b\ufeff\u00a0\u007f\x1b\U000e0041\u3164\u034f\ufe0f"
	l.Add(Record{Outcome: Done, Resource: "topic äé世 " + hidden, Claimed: hidden})
	l.Close()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "topic äé世 ")
	for _, r := range hidden {
		require.NotContains(t, string(text), string(r), "%U", r)
	}
	require.Equal(t, "topic äé世 "+hidden, lines(t, path)[0].Resource)
}

// Denials of one kind are one line, and later one with their number, whoever sends how many.
func TestRepeatedDenialsAreCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l, err := Open(path, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	for i := range 50_000 {
		l.Add(Record{Remote: fmt.Sprint("10.0.0.1:", i), Call: "POST /v1/jobs", Outcome: Denied, Reason: "no_token"})
	}
	l.Add(Record{Remote: "10.0.0.1:5", Call: "POST /v1/jobs", Outcome: Denied, Reason: "no_token", Times: 7}) // of a batch
	l.Add(Record{Remote: "10.0.0.1:5", Call: "POST /v1/jobs", Outcome: Denied, Reason: "expired"})
	l.Add(Record{Remote: "[fe80::1:2]:5", Call: "POST /v1/jobs", Outcome: Denied, Reason: "no_token"})
	for range 3 { // what was allowed is never counted together
		l.Add(Record{Remote: "10.0.0.1:5", Principal: "ops", Call: "POST /v1/jobs", Outcome: Done})
	}
	l.Close()
	got := lines(t, path)
	require.Len(t, got, 1+2+3+1)
	require.Equal(t, "10.0.0.1:0", got[0].Remote)
	require.Zero(t, got[0].Times)
	last := got[len(got)-1]
	require.Equal(t, "10.0.0.1:5", last.Remote)
	require.Equal(t, "no_token", last.Reason)
	require.Equal(t, 50_000-1+7, last.Times)
	require.Zero(t, l.dropped.Load())
}

// However many kinds and addresses there are, the lines are bounded and all denials are counted.
func TestKindsOfDenialsAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l, err := Open(path, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	const each = 500
	for i := range each { // one address with many kinds leaves room for others
		l.Add(Record{Remote: "10.0.0.1:1", Resource: fmt.Sprint("topic ", i), Outcome: Denied})
	}
	for i := range each {
		l.Add(Record{Remote: fmt.Sprintf("10.1.%d.%d:1", i/250, i%250), Resource: "topic t", Outcome: Denied})
	}
	l.Close()
	got, total, others := lines(t, path), 0, 0
	for _, r := range got {
		total += max(1, r.Times)
		if r.Call == several && r.Remote == "" {
			others++
		}
	}
	require.Equal(t, 2*each, total)
	require.LessOrEqual(t, len(got), 3*maxKinds)
	require.Equal(t, 1, others)
	require.Equal(t, "10.1.0.0:1", got[kindsOfAddress].Remote)

	c := repeats{}
	require.True(t, c.pass(Record{}))
	require.Empty(t, c.take())
	require.True(t, c.pass(Record{}), "it is the first of the next minute")
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
