package jobs

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
	"tarry/cmd/tarry/internal/clitest"
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
		s := clitest.NewShellOf(t, jobsRoot)
		s.OK("add", "-t", "mail", "-i", "a", "--max-attempts", c.attempts, "x")
		code, _, errs := s.Run("work", "-t", "mail", "--exec", script(t, c.lines), "--max", "1")
		require.Equal(t, cli.ExitOK, code, errs)
		require.Contains(t, errs, c.notes)
		code, shown, _ := s.Run("get", "a")
		if c.shown == "" {
			require.Equal(t, cli.ExitNotFound, code, c.lines)
			continue
		}
		require.Regexp(t, c.shown, shown, c.lines)
	}
}

func TestAProgramThatRunsTooLongIsStopped(t *testing.T) {
	for lines, shown := range map[string]string{
		"exec sleep 600":                       `(?m)^state +dead$[^$]*^reason +timed out after 0\.2 s$`,
		"trap 'exit 0' TERM; sleep 600 & wait": "",
	} {
		s := clitest.NewShellOf(t, jobsRoot)
		s.OK("add", "-t", "mail", "-i", "a", "--max-attempts", "1", "x")
		code, _, errs := s.Run("work", "-t", "mail", "--exec", script(t, lines), "--max", "1", "--timeout", "0.2s")
		require.Equal(t, cli.ExitOK, code, errs)
		code, out, _ := s.Run("get", "a")
		if shown == "" {
			require.Equal(t, cli.ExitNotFound, code, "it is finished")
			continue
		}
		require.Contains(t, errs, "a: attempt 1 failed: timed out after 0.2 s")
		require.Regexp(t, shown, out)
	}
}

func TestAWorkerTakesNoMoreThanItsMaximum(t *testing.T) {
	for _, concurrency := range []string{"1", "2"} {
		s := clitest.NewShellOf(t, jobsRoot)
		ids := []string{"a", "b", "c", "d", "e"}
		for _, id := range ids {
			s.OK("add", "-t", "mail", "-i", id, "x")
		}
		code, _, errs := s.Run("work", "-t", "mail", "--exec", script(t, "exit 0"), "--max", "3", "--concurrency", concurrency)
		require.Equal(t, cli.ExitOK, code, errs)
		finished := 0
		for _, id := range ids {
			code, shown, _ := s.Run("get", id)
			if code == cli.ExitNotFound {
				finished++
				continue
			}
			require.Regexp(t, `(?m)^state +ready$`, shown, "a job that is taken is worked on")
		}
		require.Equal(t, 3, finished)
	}
}

func TestAProgramKnowsItsJob(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	s.Stdin = "line 1\nline 2"
	s.OK("add", "-t", "mail", "-i", "a", "--ttr", "90s", "--priority", "7", "--header", "to=ann", "-")
	out := s.OK("work", "-t", "mail", "-n", "1", "-e", script(t, `echo "$1 $2"; cat; echo; env | grep ^TARRY_ | sort`), "--", "one", "--two")
	require.Regexp(t, `^one --two\nline 1\nline 2\nTARRY_ADDR=127\.0\.0\.1:\d+\nTARRY_ATTEMPT=1\nTARRY_DUE_AT=20\S+Z\n`+
		`TARRY_HEADERS=\{"to":"ann"\}\nTARRY_ID=a\nTARRY_PRIORITY=7\nTARRY_TOKEN=0-1-1\nTARRY_TOPIC=mail\nTARRY_TTR=90\n$`, out)
}

// jobsRoot has the commands about jobs.
func jobsRoot() *cobra.Command {
	return cli.RootOf(
		AddCommand(), ReserveCommand(), StreamCommand(), WorkCommand(), FinishCommand(), ReleaseCommand(), TouchCommand(), BuryCommand(), KickCommand(),
		DeleteCommand(), UpdateCommand(), MoveCommand(), RescheduleCommand(), PurgeCommand(), ListCommand(), GetCommand(), HistoryCommand(), ExplainCommand(),
		TopicsCommand(), StatsCommand(), ForecastCommand(), DeadCommand(), TopCommand(), PauseCommand(), ResumeCommand(), ScheduleCommand(), TopicCommand(),
	)
}

// oneJob makes a worker with a fast heartbeat that takes one job of the topic mail, and
// starts it.
func oneJob(t *testing.T, program string) (c *client.Client, log *clitest.LogBuffer, ended chan error) {
	c, err := client.New([]string{os.Getenv(cli.AddrEnv)})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	log, ended = &clitest.LogBuffer{}, make(chan error, 1)
	w := &worker{
		t:       &cli.Terminal{Client: c, Out: cli.Printer{To: io.Discard}, Notes: cli.NotePrinter{Printer: cli.Printer{To: log}}, Retries: new(atomic.Bool)},
		program: []string{program}, beat: time.Millisecond,
		reserve: client.ReserveOptions{Topics: []string{"mail"}, Max: 1, Wait: time.Minute},
	}
	w.left.Store(1)
	go func() { ended <- w.run(t.Context(), 1) }()
	return c, log, ended
}

// until is a program that runs until there is a file.
func until(file string) string { return "until [ -e " + file + " ]; do sleep 0.05; done" }

func eventually(t *testing.T, f func() bool) {
	t.Helper()
	require.Eventually(t, f, 30*time.Second, time.Millisecond)
}

func TestAReservationIsProlongedWhileItsProgramRuns(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	s.OK("topic", "set", "mail", "--retain", "1h")
	s.OK("add", "-t", "mail", "-i", "a", "--ttr", "1h", "x")
	end := filepath.Join(t.TempDir(), "end")
	c, _, ended := oneJob(t, script(t, until(end)))
	eventually(t, func() bool {
		j, err := c.Get(t.Context(), "a")
		return err == nil && j.Revision > 5
	})
	require.NoError(t, os.WriteFile(end, nil, 0o600))
	require.NoError(t, <-ended)
	require.Regexp(t, `(?m)^state +finished$[^$]*^so far +1 reserves, 0 timeouts`, s.OK("get", "a"))
}

func TestAProgramWhoseReservationIsLostIsStopped(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	s.OK("add", "-t", "mail", "-i", "a", "--ttr", "1h", "x")
	began := filepath.Join(t.TempDir(), "began")
	_, log, ended := oneJob(t, script(t, "touch "+began+"; sleep 600"))
	eventually(t, func() bool { _, err := os.Stat(began); return err == nil })
	s.OK("delete", "a")
	require.NoError(t, <-ended)
	require.Contains(t, log.String(), "a: its reservation is lost, so its program was stopped")
}

func TestAWorkerThatIsStoppedEndsItsWork(t *testing.T) {
	for _, c := range []struct {
		grace, lines string
		code         int
		state        string
	}{
		{"1h", "", cli.ExitNotFound, ""},
		{"1ms", "sleep 600 & sleep 600", cli.ExitOK, "ready"},
	} {
		s := clitest.NewShellOf(t, jobsRoot)
		folder, end := t.TempDir(), filepath.Join(t.TempDir(), "end")
		for _, id := range []string{"a", "b"} {
			s.OK("add", "-t", "mail", "-i", id, "--backoff", "1h", "x")
		}
		if c.lines == "" {
			c.lines = until(end)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var out, errs clitest.LogBuffer
		ended := make(chan int, 1)
		go func() {
			ended <- cli.RunTree(ctx, jobsRoot(), []string{"work", "-t", "mail", "-c", "2", "--grace", c.grace, "-e", script(t, "touch "+folder+"/$TARRY_ID\n"+c.lines)}, nil, &out, &errs)
		}()
		eventually(t, func() bool { files, _ := os.ReadDir(folder); return len(files) == 2 })
		stop()
		eventually(t, func() bool { return strings.Contains(errs.String(), "programs that run: 2") })
		require.NoError(t, os.WriteFile(end, nil, 0o600))
		require.Equal(t, cli.ExitOK, <-ended, errs.String())
		for _, id := range []string{"a", "b"} {
			code, out, errs := s.Run("get", id)
			require.Equal(t, c.code, code, errs)
			require.Contains(t, out, c.state)
		}
	}
}

func TestAWorkerThatMakesNoSense(t *testing.T) {
	s := clitest.NewShellOf(t, jobsRoot)
	for line, says := range map[string]string{
		"work -e x":             "TOPIC is missing",
		"work -t t":             "--exec is missing",
		"work -t t -e sh -c 0":  "--concurrency is 0",
		"work -t t -e sh -n -1": "--max is -1",
	} {
		code, _, errs := s.Run(strings.Fields(line)...)
		require.Equal(t, cli.ExitUsage, code)
		require.Contains(t, errs, says)
	}
	code, _, _ := s.Run("work", "-t", strings.Repeat("t", 500), "-e", "sh")
	require.Equal(t, cli.ExitRefused, code)
	s.OK("add", "-t", "mail", "-i", "a", "--max-attempts", "1", "x")
	code, _, errs := s.Run("work", "-t", "mail", "-e", "/no/such/program")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "no such file")
	require.Contains(t, s.OK("get", "a"), "0 reserves", "no job is touched")

	program := filepath.Join(t.TempDir(), "gone") // it cannot be run, which shows only then
	require.NoError(t, os.WriteFile(program, []byte("#!/no/such/interpreter\n"), 0o700))
	s.OK("add", "-t", "mail", "-i", "b", "x")
	code, _, errs = s.Run("work", "-t", "mail", "-e", program)
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "no such file")
	require.Contains(t, s.OK("get", "b"), "0 reserves", "one job was tried, and no more")
}
