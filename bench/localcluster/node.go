package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Node is one process of the cluster, running or not. Its command line is the
// same at every start; its environment is what Setenv made it, its binary what
// SetBinary did. Methods may be called from several goroutines.
type Node struct {
	ID                               string
	HTTP, Beanstalk, Cluster, Gossip string // host:port

	prefix  []string // runs the binary
	args    []string
	secured []string // arguments of a node of a secure cluster
	common  []string // environment that all nodes share
	host    string   // of the addresses for clients
	name    string   // of those for other nodes
	dir     string
	dataDir string

	mu  sync.Mutex
	env map[string]string
	// binary is what the next start runs.
	binary string
	run    *run // nil before the first start
}

// run is one life of a node's process.
type run struct {
	cmd  *exec.Cmd
	from int64         // where its output begins in the log
	done chan struct{} // closed when the process has been waited for
}

// DataDir is where the node keeps its state.
func (n *Node) DataDir() string { return n.dataDir }

// LogPath is the file that collects the output of all lives of the node.
func (n *Node) LogPath() string { return filepath.Join(n.dir, "log") }

// Args is the node's command line without the binary.
func (n *Node) Args() []string { return n.args }

// Setenv sets an environment variable for the next starts; an empty value takes
// it away again.
func (n *Node) Setenv(key, value string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.env == nil {
		n.env = map[string]string{}
	}
	n.env[key] = value
	if value == "" {
		delete(n.env, key)
	}
}

// Binary is what the next start runs.
func (n *Node) Binary() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.binary
}

// SetBinary makes the next starts run another binary.
func (n *Node) SetBinary(path string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.binary = path
}

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
	size, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("find the end of the log of node %s: %w", n.ID, err)
	}
	line := slices.Concat(n.prefix, []string{n.binary}, n.args)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = processAttributes()
	// A variable, not a flag, which an older release that is measured would refuse.
	cmd.Env = append(environment(), "TARRY_INSECURE=true")
	cmd.Env = append(cmd.Env, n.common...)
	for key, value := range n.env {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start node %s: %w", n.ID, err)
	}
	r := &run{cmd: cmd, from: size, done: make(chan struct{})}
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

// Wait waits until the process has ended by itself and gives its exit code, -1
// when a signal ended it.
func (n *Node) Wait(ctx context.Context) (int, error) {
	n.mu.Lock()
	r := n.run
	n.mu.Unlock()
	if r == nil {
		return 0, fmt.Errorf("node %s was never started", n.ID)
	}
	select {
	case <-r.done:
		return r.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("node %s did not exit: %w", n.ID, ctx.Err())
	}
}

// maxOutput bounds what Output reads.
const maxOutput = 1 << 20

// Output is what the current or last life of the node printed, its first
// mebibyte at most.
func (n *Node) Output() (string, error) {
	n.mu.Lock()
	var from int64
	if n.run != nil {
		from = n.run.from
	}
	n.mu.Unlock()
	f, err := os.Open(n.LogPath())
	if err != nil {
		return "", fmt.Errorf("read log of node %s: %w", n.ID, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, from, maxOutput))
	if err != nil {
		return "", fmt.Errorf("read log of node %s: %w", n.ID, err)
	}
	return string(data), nil
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
	entries, err := os.ReadDir(n.DataDir())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("wipe node %s: %w", n.ID, err)
	}
	// Not the directory itself: it may be a mount.
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(n.DataDir(), e.Name())); err != nil {
			return fmt.Errorf("wipe node %s: %w", n.ID, err)
		}
	}
	return nil
}
