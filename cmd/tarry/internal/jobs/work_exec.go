package jobs

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"

	"tarry/client"
	"tarry/cmd/tarry/internal/cli"
	"tarry/job"
)

const (
	// exitTryAgain is EX_TEMPFAIL of sysexits.h.
	exitTryAgain = 75
	maxConsumer  = job.MaxConsumerBytes
	// killAfter is how long a program may take to end after SIGTERM.
	killAfter = 5 * time.Second
	// maxLine bounds what is kept of a line of a program.
	maxLine = 64 << 10
)

// ran is what became of a program.
type ran struct {
	code   int    // -1: it did not start, or a signal ended it
	reason string // why it failed

	notStarted error // why it did not start
}

// execute runs the program for one job until it ends, or ctx does. It is the head of a
// process group, so that a Ctrl-C at the terminal leaves it time to end.
func (w *worker) execute(ctx context.Context, j *client.Reserved) ran {
	cmd := exec.CommandContext(ctx, w.program[0], w.program[1:]...)
	cmd.Env = append(os.Environ(), w.environment(j)...)
	cmd.Stdin = bytes.NewReader(j.Bytes())
	out, errs := &lineWriter{to: w.t.Out}, &lineWriter{to: w.t.Notes.Printer}
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killAfter
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what the program left behind
	}
	out.flush()
	errs.flush()
	var ended *exec.ExitError
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay): // it left somebody with its streams
		return ran{}
	case cmd.ProcessState != nil && cmd.ProcessState.Success(): // err is that of ctx
		return ran{}
	case errors.As(err, &ended):
		return ran{code: ended.ExitCode(), reason: reasonOf(errs.last, err)}
	}
	return ran{code: -1, reason: reasonOf("", err), notStarted: err}
}

// environment is what a program learns of its job.
func (w *worker) environment(j *client.Reserved) []string {
	headers := []byte("{}")
	if len(j.Headers) > 0 {
		headers, _ = json.Marshal(j.Headers, json.Deterministic(true))
	}
	return []string{
		"TARRY_ID=" + j.ID, "TARRY_TOPIC=" + j.Topic, "TARRY_TOKEN=" + j.Token,
		"TARRY_ATTEMPT=" + strconv.Itoa(int(j.Attempts)), "TARRY_PRIORITY=" + strconv.Itoa(int(j.Priority)),
		"TARRY_DUE_AT=" + cli.Timestamp(j.DueAt), "TARRY_TTR=" + strconv.FormatFloat(j.TTR.Seconds(), 'f', -1, 64),
		"TARRY_HEADERS=" + string(headers), cli.AddrEnv + "=" + w.addr,
	}
}

// reasonOf is the last line that a program wrote on standard error; without one, how it
// ended.
func reasonOf(line string, err error) string {
	if line == "" {
		line = err.Error()
	}
	line = strings.ToValidUTF8(line, "\uFFFD")
	if len(line) > job.MaxReasonBytes {
		line = strings.ToValidUTF8(line[:job.MaxReasonBytes], "")
	}
	return line
}

// lineWriter passes lines on whole, so that those of several programs do not mix, and
// keeps the last that is not empty.
type lineWriter struct {
	to   cli.Printer
	mu   sync.Mutex // a program that left somebody with its streams
	part []byte
	last string
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.part = append(w.part, p...)
	for {
		end := bytes.IndexByte(w.part, '\n') + 1
		if end == 0 && len(w.part) >= maxLine {
			end = maxLine
		}
		if end == 0 {
			return len(p), nil
		}
		if err := w.line(w.part[:end]); err != nil {
			return 0, err
		}
		w.part = append(w.part[:0], w.part[end:]...)
	}
}

func (w *lineWriter) line(text []byte) error {
	if line := strings.TrimSpace(string(text)); line != "" {
		w.last = line
	}
	return w.to.Raw(text)
}

// flush passes on what has no end of a line.
func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.part) > 0 {
		_ = w.line(append(w.part, '\n'))
		w.part = nil
	}
}
