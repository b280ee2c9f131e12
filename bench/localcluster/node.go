package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// Node is one process of the cluster, running or not. Its command line is the
// same at every start. Methods may be called from several goroutines.
type Node struct {
	ID                               string
	HTTP, Beanstalk, Cluster, Gossip string // host:port

	binary string
	args   []string
	dir    string

	mu  sync.Mutex
	run *run // nil before the first start
}

// run is one life of a node's process.
type run struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has been waited for
}

// DataDir is where the node keeps its state.
func (n *Node) DataDir() string { return filepath.Join(n.dir, "data") }

// LogPath is the file that collects the output of all lives of the node.
func (n *Node) LogPath() string { return filepath.Join(n.dir, "log") }

// Args is the node's command line without the binary.
func (n *Node) Args() []string { return n.args }

// Start starts the process and does not wait for it to be ready.
func (n *Node) Start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.running() {
		return fmt.Errorf("node %s is running already", n.ID)
	}
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return fmt.Errorf("make directory of node %s: %w", n.ID, err)
	}
	log, err := os.OpenFile(n.LogPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open log of node %s: %w", n.ID, err)
	}
	defer log.Close() // the process has its own copy
	cmd := exec.Command(n.binary, n.args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = processAttributes()
	cmd.Env = environment()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start node %s: %w", n.ID, err)
	}
	r := &run{cmd: cmd, done: make(chan struct{})}
	n.run = r
	go func() { // ends with the process, which Cluster.Stop ends
		defer close(r.done)
		_ = cmd.Wait() // the state is read from cmd.ProcessState
	}()
	return nil
}

// environment is ours without the variables that configure a node, so that a
// developer's shell does not change what is measured.
func environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TARRY_") {
			env = append(env, v)
		}
	}
	return env
}

// running needs n.mu.
func (n *Node) running() bool {
	if n.run == nil {
		return false
	}
	select {
	case <-n.run.done:
		return false
	default:
		return true
	}
}

// Running reports whether the process is there, paused or not.
func (n *Node) Running() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.running()
}

// PID is the process id of the current or last life; 0 before the first start.
func (n *Node) PID() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.run == nil {
		return 0
	}
	return n.run.cmd.Process.Pid
}

func (n *Node) signal(s syscall.Signal) (*run, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.run == nil {
		return nil, fmt.Errorf("node %s was never started", n.ID)
	}
	err := n.run.cmd.Process.Signal(s)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return nil, fmt.Errorf("send %v to node %s: %w", s, n.ID, err)
	}
	return n.run, nil
}

// Kill is kill -9. It returns when the process is gone.
func (n *Node) Kill() error {
	r, err := n.signal(syscall.SIGKILL)
	if err != nil {
		return err
	}
	<-r.done
	return nil
}

// Terminate is SIGTERM: the node drains and exits. It waits for the exit until
// ctx ends and fails when the node exits with anything but 0.
func (n *Node) Terminate(ctx context.Context) error {
	r, err := n.signal(syscall.SIGTERM)
	if err != nil {
		return err
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return fmt.Errorf("node %s did not exit after SIGTERM: %w", n.ID, ctx.Err())
	}
	if code := r.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("node %s exited with %d after SIGTERM", n.ID, code)
	}
	return nil
}

// Pause is SIGSTOP: the process stands still with all its connections open.
func (n *Node) Pause() error {
	_, err := n.signal(syscall.SIGSTOP)
	return err
}

// Resume is SIGCONT.
func (n *Node) Resume() error {
	_, err := n.signal(syscall.SIGCONT)
	return err
}

// Wipe removes the state of a node that is not running.
func (n *Node) Wipe() error {
	if n.Running() {
		return fmt.Errorf("node %s is running; wiping its data would prove nothing", n.ID)
	}
	return os.RemoveAll(n.DataDir())
}
