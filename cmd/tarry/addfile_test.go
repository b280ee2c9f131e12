package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/cmd/tarry/internal/cli"
	"tarry/job"
)

func manyLines(n int, line func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i) + "\n")
	}
	return b.String()
}

func writeFile(t *testing.T, text string) string {
	file := filepath.Join(t.TempDir(), "jobs.ndjson")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestJobsOfAFileAreAdded(t *testing.T) {
	s := newShell(t)
	file := writeFile(t, `{"id":"a","delay":3600,"ttr":5,"priority":0,"max_attempts":3,"backoff":[60,120],"headers":{"k":"v"},"body":{"n":1}}`+"\r\n\n"+
		`{"topic":"sms","id":"b","backoff":30,"body_base64":"AP8="}`+"\n"+
		`{"topic":"sms","backoff":{"base":1},"due_at":"2040-01-01T00:00:00Z","body":"last"}`)
	require.Equal(t, "3 added, 0 were there already\n", s.OK("add", "-t", "mail", "--file", file))
	require.NoFileExists(t, cli.ProgressFile(file))
	shown := s.OK("get", "a", "--json")
	for _, part := range []string{`"topic":"mail"`, `"state":"delayed"`, `"ttr":5`, `"priority":0`, `"max_attempts":3`, `"delays":[60,120]`, `"k":"v"`, `"body":{"n":1}`} {
		require.Contains(t, shown, part)
	}
	require.Equal(t, "\x00\xff", s.OK("get", "b", "--raw"))
	require.Regexp(t, `(?m)^import-[a-z0-9]{12}-4 +sms +delayed +2040`, s.OK("list", "sms", "--absolute"))

	s.Stdin = `{"topic":"in","id":"c","body":"x"}`
	require.Equal(t, "{\"added\":1,\"existing\":0}\n", s.OK("add", "-f", "-", "--json"))
	require.Equal(t, "0 added, 1 were there already\n", s.OK("add", "-f", "-"))

	// What has ended runs only if that is asked for.
	s.OK("topic", "set", "in", "--retain", "1h")
	s.OK("delete", "c")
	require.Contains(t, s.OK("add", "-f", "-"), "0 added, 1 were there already, 1 of which have ended")
	require.Equal(t, "{\"added\":0,\"existing\":1,\"ended\":1}\n", s.OK("add", "-f", "-", "--json"))
	require.Contains(t, s.OK("add", "-t", "in", "--id", "c", "x"), "has ended")
	require.Contains(t, s.OK("add", "-t", "in", "--id", "c", "x", "--if-exists", "replace_ended"), "another job gave way")
	require.Contains(t, s.OK("add", "-t", "in", "--id", "c", "x", "--if-exists", "replace_ended"), "it was there already")
}

func TestAFileIsCheckedBeforeItIsAdded(t *testing.T) {
	s := newShell(t)
	good := manyLines(1500, func(i int) string { return fmt.Sprintf(`{"id":"%d","body":"x"}`, i) })
	bad := writeFile(t, good+`{"topic":"mail","body":"x","delay":-5}`+"\nhello\n\n"+`{"body":"x","dalay":5}`+"\n"+`{"body":"x"}`+"\n"+`{"topic":"","body":1}`)
	code, out, errs := s.Run("add", "mail", "--file", bad, "--check")
	require.Equal(t, cli.ExitRefused, code)
	require.Empty(t, out)
	lines := strings.Split(errs, "\n")
	require.Len(t, lines, 6, errs)
	require.Equal(t, "line 1501: delay is -5 s; it must be between 0 and 1000000000 s", lines[0])
	require.Contains(t, lines[1], "line 1502 is not valid JSON at byte 1")
	require.Contains(t, lines[2], "line 1504: dalay is not a field of a job")
	require.Contains(t, lines[3], "line 1506: topic is missing or empty")
	require.Equal(t, "4 of 1505 jobs cannot be added", lines[4])
	require.NoFileExists(t, cli.ProgressFile(bad))
	require.Empty(t, s.Queue.Ops())

	require.Equal(t, "1500 jobs can be added\n", s.OK("add", "mail", "--file", writeFile(t, good), "--check"))
	s.Stdin = `{"topic":"in","push_url":"https://shop.example/x","body":"x"}`
	require.Equal(t, "{\"valid\":1}\n", s.OK("add", "-f", "-", "--check", "--json"))
	code, _, errs = s.Run("add", "mail", "x", "--check")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "--check needs --file")
	require.Empty(t, s.Queue.Ops())
}

func TestAnInterruptedFileGoesOnAndAddsNoJobTwice(t *testing.T) {
	s := newShell(t)
	file := writeFile(t, manyLines(2500, func(i int) string { return fmt.Sprintf(`{"topic":"mail","body":"%d"}`, i) }))
	s.Queue.FailNext(nil, job.Unknown("leadership was lost"))
	code, _, errs := s.Run("add", "-f", file, "--patience", "0")
	require.Equal(t, cli.ExitUnknown, code)
	require.Contains(t, errs, "1000 jobs are added; run the same command again to go on")

	// The second batch was added, but that was not noted.
	before, err := os.ReadFile(cli.ProgressFile(file))
	require.NoError(t, err)
	s.Queue.FailNext(nil, job.Unknown("leadership was lost"))
	code, _, errs = s.Run("add", "-f", file, "--patience", "0")
	require.Equal(t, cli.ExitUnknown, code)
	require.Contains(t, errs, "going on behind line 1000")
	require.NoError(t, os.WriteFile(cli.ProgressFile(file), before, 0o600))

	require.Equal(t, "1500 added, 1000 were there already\n", s.OK("add", "-f", file))
	require.Regexp(t, `(?m)^mail +0 +2500 `, s.OK("topics"))
	require.NoFileExists(t, cli.ProgressFile(file))
}

func TestALineThatIsRefusedEndsTheFile(t *testing.T) {
	s := newShell(t)
	text := manyLines(1200, func(i int) string { return fmt.Sprintf(`{"topic":"mail","id":"j%d","body":"x"}`, i) })
	bad := strings.Replace(text, `"id":"j1100"`, `"priority":1,"id":"j1100","delay":-1`, 1)
	file := writeFile(t, bad)
	code, _, errs := s.Run("add", "-f", file)
	require.Equal(t, cli.ExitRefused, code)
	require.Contains(t, errs, "line 1101: delay is -1 s; it must be between 0 and")
	require.Contains(t, errs, "1 of the lines 1001 to 1200 were refused")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	require.Equal(t, "1001 added, 199 were there already\n", s.OK("add", "-f", file))

	for wrong, says := range map[string]string{
		`{"body":"x"}`: "line 1: topic",
	} {
		code, _, errs := s.Run("add", "-f", writeFile(t, wrong))
		require.NotEqual(t, cli.ExitOK, code)
		require.Contains(t, errs, says)
	}
}

func TestALineThatIsNoJobIsNamedWithItsField(t *testing.T) {
	s := newShell(t)
	for line, says := range map[string]string{
		`{"priority":"high"}`:               `: priority must be a whole number from 0 to 4294967295, not "high"`,
		`{"priority":-1}`:                   `: priority must be a whole number from 0 to 4294967295, not -1`,
		`{"max_attempts":4294967296}`:       `: max_attempts must be a whole number from 0 to 4294967295, not 4294967296`,
		`{"max_attempts":1.5}`:              `: max_attempts must be a whole number from 0 to 4294967295, not 1.5`,
		`{"delay":"5s"}`:                    `: delay must be a number of seconds, not "5s"`,
		`{"delay":1e300}`:                   `: delay must be a number of seconds, not 1e300`,
		`{"due_at":"tomorrow"}`:             `: due_at must be an RFC 3339 timestamp with a zone, such as 2030-01-31T12:00:00Z, not "tomorrow"`,
		`{"topic":7}`:                       `: topic must be a string, not 7`,
		`{"if_exists":true}`:                `: if_exists must be a string, not true`,
		`{"headers":{"k":1}}`:               `: headers.k must be a string, not 1`,
		`{"headers":"k"}`:                   `: headers must be an object of strings, not "k"`,
		`{"backoff":"1m"}`:                  `: backoff must be a number of seconds, a list of them or an object, not "1m"`,
		`{"backoff":[1,"2m"]}`:              `: backoff.1 must be a number of seconds, not "2m"`,
		`{"backoff":{"factor":"2"}}`:        `: backoff.factor must be a number, not "2"`,
		`{"backoff":{"bas":1}}`:             `: backoff.bas is not a field of a job; it takes those of POST /v1/jobs`,
		`{"priorty":1}`:                     `: priorty is not a field of a job`,
		`{"topic":"a","topic":"b"}`:         `: topic is given twice`,
		`{"topic":`:                         ` is not valid JSON at byte 11`,
		`{"topic":"a"} x`:                   ` is not valid JSON at byte 15`,
		`[1]`:                               ` is not a JSON object but [1]`,
		`"` + strings.Repeat("x", 50) + `"`: ` is not a JSON object but "` + strings.Repeat("x", 39) + "\n",
		"\xff\xfe{\x00":                     ` is UTF-16; the file must be UTF-8`,
	} {
		code, _, errs := s.Run("add", "-t", "t", "-f", writeFile(t, "\n"+line+"\n"))
		require.Equal(t, cli.ExitRefused, code, line)
		require.Contains(t, errs, "tarry add: line 2"+says, line)
	}
	code, _, errs := s.Run("add", "-t", "t", "-f", writeFile(t, `{"body":"`+strings.Repeat("x", cli.MaxJobLine)))
	require.Equal(t, cli.ExitRefused, code)
	require.Contains(t, errs, "line 1 is longer than 16777216 bytes, which is the limit")
}

func TestAByteOrderMarkIsSkipped(t *testing.T) {
	s := newShell(t)
	require.Equal(t, "2 added, 0 were there already\n", s.OK("add", "-f", writeFile(t, "\ufeff"+`{"topic":"t","id":"a","body":"x"}`+"\r\n"+`{"topic":"t","id":"b","body":"x"}`)))
	code, _, errs := s.Run("add", "-f", writeFile(t, "\n\ufeff{}"))
	require.Equal(t, cli.ExitRefused, code, "only at the beginning")
	require.Contains(t, errs, "line 2 is not valid JSON at byte 1")
}

func TestAnotherFileIsNotGoneOnWith(t *testing.T) {
	s := newShell(t)
	text := manyLines(1500, func(i int) string { return fmt.Sprintf(`{"topic":"mail","id":"j%04d","body":"x"}`, i) })
	file := writeFile(t, text)
	s.Queue.FailNext(nil, job.Errorf(job.CodeDiskLow, "low"))
	code, _, _ := s.Run("add", "-f", file, "--patience", "0")
	require.Equal(t, cli.ExitRefused, code)
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(text, "j", "k")), 0o600))
	code, _, errs := s.Run("add", "-f", file)
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "is of another")
}

func TestFilesThatMakeNoSense(t *testing.T) {
	s := newShell(t)
	for line, says := range map[string]string{
		"add -t t -f x y":      "either BODY or --file",
		"add -t t -f x -d 5s":  "--delay is for one job",
		"add -t t -f x --id a": "--id is for one job",
		"add -t t --file= x":   "--file is empty",
		"export a b":           "takes [TOPIC]",
		"export a --raw":       "not defined",
	} {
		code, _, errs := s.Run(strings.Fields(line)...)
		require.Equal(t, cli.ExitUsage, code, line)
		require.Contains(t, errs, says)
	}
	code, _, errs := s.Run("add", "-t", "t", "-f", "/no/such/file")
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "no such file")
}

func TestWhatIsExportedCanBeAdded(t *testing.T) {
	s := newShell(t)
	s.OK("add", "-t", "mail", "-i", "a", "--due-at", "2040-01-01T00:00:00Z", "--ttr", "5s", "--priority", "3", "--header", "k=v", "--backoff", "1m", "x")
	s.Stdin = "\x00\xff"
	s.OK("add", "-t", "sms", "-i", "b", "--due-at", "2040-01-01T00:00:00Z", "-")
	s.OK("add", "-t", "sms", "-i", "c", "--due-at", "2040-01-01T00:00:00Z", "--body-json", `{"n":[1]}`)
	s.Bury("mail", "dead", "x")
	file := filepath.Join(t.TempDir(), "out")
	require.Equal(t, "3 jobs written to "+file+"\n", s.OK("export", "--out", file))
	require.NoFileExists(t, cli.ProgressFile(file))
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(written), s.OK("export"))
	require.Len(t, strings.Split(strings.TrimSpace(s.OK("export", "mail", "--states", "dead,delayed")), "\n"), 2)

	other := newShell(t)
	require.Equal(t, "3 added, 0 were there already\n", other.OK("add", "-f", file))
	require.Equal(t, string(written), other.OK("export"))
	require.Equal(t, "\x00\xff", other.OK("get", "b", "--raw"))

	code, _, errs := s.Run("export", "--out", file)
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "exists; remove it")
}

func TestAnInterruptedExportGoesOn(t *testing.T) {
	s := newShell(t)
	s.OK("add", "-f", writeFile(t, manyLines(2600, func(i int) string {
		return fmt.Sprintf(`{"topic":"t%d","id":"j%04d","delay":%d,"body":"x"}`, i%2, i, i%3*3600)
	})))
	want := s.OK("export", "--states", "delayed,ready")
	node, err := url.Parse("http://" + os.Getenv(cli.AddrEnv))
	require.NoError(t, err)
	var left atomic.Int64 // calls that the node answers
	through := httputil.NewSingleHostReverseProxy(node)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if left.Add(-1) < 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, `{"success":false,"code":"not_applied","error":"there is no leader","outcome":"not_applied"}`)
			return
		}
		r.Host = node.Host
		through.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	for calls := range int64(20) { // it is interrupted at every call
		file := filepath.Join(t.TempDir(), "out")
		left.Store(calls)
		code, _, errs := s.Run("export", "--states", "delayed,ready", "-o", file, "--patience", "0", "-a", proxy.Listener.Addr().String())
		if code == cli.ExitOK {
			require.Greater(t, calls, int64(5))
			return
		}
		require.Equal(t, cli.ExitUnreachable, code, errs)
		code, _, errs = s.Run("export", "-o", file)
		require.Equal(t, cli.ExitFailed, code)
		require.Contains(t, errs, "other flags")
		s.OK("export", "--states", "delayed,ready", "-o", file)
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, want, string(got), calls)
	}
	t.Fatal("the export never came to its end")
}

// Who interrupts a long command learns how far it is, and how it goes on.
func TestAnInterruptionSaysHowFarItIs(t *testing.T) {
	s := newShell(t)
	file := writeFile(t, manyLines(2500, func(i int) string {
		return fmt.Sprintf(`{"topic":"mail","id":"j%04d","delay":%d,"body":"x"}`, i, i%2*3600)
	}))
	s.OK("add", "-f", file)
	all, _ := exportAll(s)
	node, err := url.Parse("http://" + os.Getenv(cli.AddrEnv))
	require.NoError(t, err)
	through := httputil.NewSingleHostReverseProxy(node)
	var left atomic.Int64 // calls before the interruption
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if left.Add(-1) < 0 {
			io.Copy(io.Discard, r.Body) // only then the server notices that the client is gone
			require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGINT))
			<-r.Context().Done()
			return
		}
		r.Host = node.Host
		through.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	out := filepath.Join(t.TempDir(), "out")
	for _, c := range []struct {
		calls int64
		args  []string
		says  string
	}{
		{2, []string{"export", "mail", "-o", out}, "tarry export: interrupted; 1000 jobs are written to " + out},
		{2, []string{"add", "-f", file}, "tarry add: interrupted; 2000 jobs are added"},
		{2, []string{"import", all}, "tarry import: interrupted; 1001 of 2502 lines are imported"},
	} {
		left.Store(c.calls)
		code, _, errs := s.Run(append(c.args, "-a", proxy.Listener.Addr().String())...)
		require.Equal(t, cli.ExitFailed, code, "%v: %s", c.args, errs)
		require.Contains(t, errs, c.says)
		require.Contains(t, errs, "run the same command again to go on")
		s.OK(c.args...)
	}
	left.Store(2)
	code, _, errs := s.Run("export", "mail", "-a", proxy.Listener.Addr().String())
	require.Equal(t, cli.ExitFailed, code, errs)
	require.Contains(t, errs, "tarry export: interrupted; 1000 jobs are written, and the rest is missing")
}
