package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"tarry/bench/localcluster"
	"tarry/internal/freeport"
)

// process is a server of a peer.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when the process has been waited for
}

// processes belong to one instance, which stops them.
type processes []*process

// launch starts a program in its own directory, with its output in a file there.
func (p *processes) launch(dir, program string, args ...string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make a directory for %s: %w", program, err)
	}
	started := &process{cmd: exec.Command(program, args...), log: filepath.Join(dir, "log"), done: make(chan struct{})}
	log, err := os.Create(started.log)
	if err != nil {
		return fmt.Errorf("make the log of %s: %w", program, err)
	}
	defer log.Close() // the process has its own copy
	started.cmd.Dir, started.cmd.Stdout, started.cmd.Stderr = dir, log, log
	// A killed run leaves nothing behind.
	started.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := started.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}
	go func() { // ends with the process, which stop ends
		defer close(started.done)
		_ = started.cmd.Wait()
	}()
	*p = append(*p, started)
	return nil
}

func (p processes) pids() []int {
	var pids []int
	for _, one := range p {
		pids = append(pids, one.cmd.Process.Pid)
	}
	return pids
}

// stop kills all of them and waits for them.
func (p processes) stop() error {
	var errs []error
	for _, one := range p {
		if err := one.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, err)
		}
		<-one.done
	}
	return errors.Join(errs...)
}

// explain adds the end of each log to an error.
func (p processes) explain(err error) error {
	const tail = 1000
	for _, one := range p {
		if data, readErr := os.ReadFile(one.log); readErr == nil {
			err = fmt.Errorf("%w\nend of %s:\n%s", err, one.log, data[max(0, len(data)-tail):])
		}
	}
	return err
}

// ready calls f until it succeeds, for half a minute at most.
func ready(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return localcluster.Until(ctx, f)
}

// freeAddr is an address of this machine that nobody listens on.
func freeAddr() (string, error) {
	port, err := freeport.Take()
	if err != nil {
		return "", err
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
}

// answers dials an address until somebody listens there.
func answers(ctx context.Context, addr string) error {
	return ready(ctx, func() error {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return err
		}
		return c.Close()
	})
}
