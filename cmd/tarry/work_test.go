package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/client"
)

// script writes a program and gives its path.
func script(t *testing.T, lines string) string {
	path := filepath.Join(t.TempDir(), "program.sh")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+lines), 0o700))
	return path
}

func TestTheExitCodeOfAProgramDecides(t *testing.T) {
	for _, c := range []struct{ attempts, lines, shown, notes string }{
		{"1", "cat >/dev/null; exit 0", "", ""},
		{"2", "exit 75", `(?m)^state +delayed$[^$]*^due +in 10s$`, ""},
		{"1", "echo first >&2; echo 'no route' >&2; echo >&2; exit 3", `(?m)^state +dead$[^$]*^reason +no route$`, "a: attempt 1 failed: no route"},
		{"1", "printf 'no newline' >&2; exit 1", `reason +no newline`, "no newline"},
		{"1", "exit 4", `reason +exit status 4`, "exit status 4"},
		{"1", "kill -9 $$", `reason +signal: killed`, "signal: killed"},
	} {
		s := newShell(t)
		s.ok("add", "-t", "mail", "-i", "a", "--max-attempts", c.attempts, "x")
		code, _, errs := s.run("work", "-t", "mail", "--exec", script(t, c.lines), "--max", "1")
		require.Equal(t, exitOK, code, errs)
		require.Contains(t, errs, c.notes)
		code, shown, _ := s.run("get", "a")
		if c.shown == "" {
			require.Equal(t, exitNotFound, code, c.lines)
			continue
		}
		require.Regexp(t, c.shown, shown, c.lines)
	}
}

func TestAProgramKnowsItsJob(t *testing.T) {
	s := newShell(t)
	s.stdin = "line 1\nline 2"
	s.ok("add", "-t", "mail", "-i", "a", "--ttr", "90s", "--priority", "7", "--header", "to=ann", "-")
	out := s.ok("work", "-t", "mail", "-n", "1", "-e", script(t, `echo "$1 $2"; cat; echo; env | grep ^TARRY_ | sort`), "--", "one", "--two")
	require.Regexp(t, `^one --two\nline 1\nline 2\nTARRY_ADDR=127\.0\.0\.1:\d+\nTARRY_ATTEMPT=1\nTARRY_DUE_AT=20\S+Z\n`+
		`TARRY_HEADERS=\{"to":"ann"\}\nTARRY_ID=a\nTARRY_PRIORITY=7\nTARRY_TOKEN=0-1-1\nTARRY_TOPIC=mail\nTARRY_TTR=90\n$`, out)
}

func TestAReservationIsProlongedWhileItsProgramRuns(t *testing.T) {
	s := newShell(t)
	s.ok("topic", "set", "mail", "--retain", "1h")
	s.ok("add", "-t", "mail", "-i", "a", "--ttr", "1h", "x")
	c, err := client.New([]string{os.Getenv(addrEnv)})
	require.NoError(t, err)
	defer c.Close()
	end := filepath.Join(t.TempDir(), "end")
	w := &worker{
		t:       &terminal{client: c, out: printer{io.Discard}, notes: printer{io.Discard}, retries: new(atomic.Bool)},
		program: []string{script(t, "until [ -e "+end+" ]; do sleep 0.05; done")}, beat: time.Millisecond,
		reserve: client.Reserve{Topics: []string{"mail"}, Max: 1, Wait: time.Minute},
	}
	w.left.Store(1)
	ended := make(chan error, 1)
	go func() { ended <- w.run(t.Context(), 1) }()
	touched := func() uint32 {
		j, err := c.Get(t.Context(), "a")
		require.NoError(t, err)
		return j.Revision
	}
	require.Eventually(t, func() bool { return touched() > 5 }, 20*time.Second, time.Millisecond)
	require.NoError(t, os.WriteFile(end, nil, 0o600))
	require.NoError(t, <-ended)
	require.Regexp(t, `(?m)^state +finished$[^$]*^so far +1 reserves, 0 timeouts`, s.ok("get", "a"))
}

func TestAProgramWhoseReservationIsLostIsStopped(t *testing.T) {
	s := newShell(t)
	s.ok("add", "-t", "mail", "-i", "a", "--ttr", "300ms", "x")
	taken := filepath.Join(t.TempDir(), "taken")
	done := make(chan string, 1)
	go func() {
		_, _, errs := s.run("work", "-t", "mail", "-n", "1", "-e", script(t, "touch "+taken+"; sleep 600"))
		done <- errs
	}()
	require.Eventually(t, func() bool { _, err := os.Stat(taken); return err == nil }, 20*time.Second, time.Millisecond)
	s.ok("delete", "a")
	require.Contains(t, <-done, "a: its reservation is lost, so its program was stopped")
}

func TestAWorkerThatIsStoppedEndsItsWork(t *testing.T) {
	for _, c := range []struct {
		grace, lines, notes string
		code                int
		state               string
	}{
		{"1m", "sleep 0.5", "programs that run: 2", exitNotFound, ""},
		{"1ms", "sleep 600 & sleep 600", "programs that run: 2", exitOK, "ready"},
	} {
		s := newShell(t)
		folder := t.TempDir()
		for _, id := range []string{"a", "b"} {
			s.ok("add", "-t", "mail", "-i", id, "--backoff", "1h", "x")
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ended := make(chan string, 1)
		go func() {
			var out, errs bytes.Buffer
			code := run(ctx, []string{"work", "-t", "mail", "-c", "2", "--grace", c.grace, "-e", script(t, "touch "+folder+"/$TARRY_ID\n"+c.lines)}, nil, &out, &errs)
			require.Equal(t, exitOK, code, errs.String())
			ended <- errs.String()
		}()
		require.Eventually(t, func() bool { files, _ := os.ReadDir(folder); return len(files) == 2 }, 20*time.Second, time.Millisecond)
		stop()
		require.Contains(t, <-ended, c.notes)
		for _, id := range []string{"a", "b"} {
			code, out, errs := s.run("get", id)
			require.Equal(t, c.code, code, errs)
			require.Contains(t, out, c.state)
		}
	}
}

func TestAWorkerThatMakesNoSense(t *testing.T) {
	s := newShell(t)
	for line, says := range map[string]string{
		"work -e x":             "--topic is missing",
		"work -t t":             "--exec is missing",
		"work -t t -e sh -c 0":  "--concurrency is 0",
		"work -t t -e sh -n -1": "--max is -1",
	} {
		code, _, errs := s.run(strings.Fields(line)...)
		require.Equal(t, exitUsage, code)
		require.Contains(t, errs, says)
	}
	code, _, _ := s.run("work", "-t", strings.Repeat("t", 500), "-e", "sh")
	require.Equal(t, exitRefused, code)
	s.ok("add", "-t", "mail", "-i", "a", "--max-attempts", "1", "x")
	code, _, errs := s.run("work", "-t", "mail", "-e", "/no/such/program")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "no such file")
	require.Contains(t, s.ok("get", "a"), "0 reserves", "no job is touched")

	program := filepath.Join(t.TempDir(), "gone") // it cannot be run, which shows only then
	require.NoError(t, os.WriteFile(program, []byte("#!/no/such/interpreter\n"), 0o700))
	s.ok("add", "-t", "mail", "-i", "b", "x")
	code, _, errs = s.run("work", "-t", "mail", "-e", program)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "no such file")
	require.Contains(t, s.ok("get", "b"), "0 reserves", "one job was tried, and no more")
}
