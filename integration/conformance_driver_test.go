package integration

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stepTime is how long a driver may take over one step, or over its end. It is far above
// what any step needs.
const stepTime = 120 * time.Second

// driver is a client's process, which gives one line for each that it gets, or as a
// worker lines of its own.
type driver struct {
	t     *testing.T
	cmd   *exec.Cmd
	input io.WriteCloser
	lines chan []byte // closed at the end of its output
	done  chan error  // the end of the process

	mu     sync.Mutex
	errors bytes.Buffer // what it wrote for people
}

func startDriver(t *testing.T, command []string, args ...string) *driver {
	d := &driver{t: t, lines: make(chan []byte, 1024), done: make(chan error, 1)}
	d.cmd = exec.Command(command[0], append(command[1:len(command):len(command)], args...)...)
	var err error
	d.input, err = d.cmd.StdinPipe()
	require.NoError(t, err)
	output, err := d.cmd.StdoutPipe()
	require.NoError(t, err)
	d.cmd.Stderr = d
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with what it forks
	require.NoError(t, d.cmd.Start())
	go func() { // ends with the process, which the cleanup kills
		scanner := bufio.NewScanner(output)
		scanner.Buffer(nil, 64<<20)
		for scanner.Scan() {
			d.lines <- bytes.Clone(scanner.Bytes())
		}
		close(d.lines)
		d.done <- d.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-d.cmd.Process.Pid, syscall.SIGKILL)
		if t.Failed() {
			d.mu.Lock()
			defer d.mu.Unlock()
			t.Logf("what the driver says: %s", d.errors.Bytes())
		}
	})
	return d
}

// Write takes the driver's standard error.
func (d *driver) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.errors.Write(p)
}

func (d *driver) send(call string, args any) {
	d.t.Helper()
	if args == nil {
		args = object{}
	}
	line, err := json.Marshal(object{"call": call, "args": args})
	require.NoError(d.t, err)
	_, err = d.input.Write(append(line, '\n'))
	require.NoError(d.t, err, "the driver does not read: %s", call)
}

// receive is the next line: the result of a step or its error.
func (d *driver) receive() (ok any, failure object, err error) {
	line, err := d.line()
	if err != nil {
		return nil, nil, err
	}
	var reply map[string]any
	if err := json.Unmarshal(line, &reply); err != nil || len(reply) != 1 {
		return nil, nil, fmt.Errorf("the driver's line is no result: %.500s", line)
	}
	if e, is := reply["error"].(object); is {
		return nil, e, nil
	}
	result, is := reply["ok"]
	if !is {
		return nil, nil, fmt.Errorf("the driver's line is no result: %.500s", line)
	}
	return result, nil, nil
}

func (d *driver) line() ([]byte, error) {
	select {
	case line, more := <-d.lines:
		if !more {
			return nil, errors.New("the driver has ended")
		}
		return line, nil
	case <-time.After(stepTime):
		return nil, errors.New("the driver says nothing")
	}
}

// exit waits for the end of the process. Lines that nobody read are returned.
func (d *driver) exit() (code int, left [][]byte) {
	d.t.Helper()
	for {
		line, err := d.line()
		if err != nil {
			break
		}
		left = append(left, line)
	}
	select {
	case err := <-d.done:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			require.NoError(d.t, err)
		}
		return d.cmd.ProcessState.ExitCode(), left
	case <-time.After(stepTime):
		require.FailNow(d.t, "the driver does not end")
		return 0, nil
	}
}
