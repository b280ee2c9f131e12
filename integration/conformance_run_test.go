package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
	"tarry/job"
)

// caseRun is one case while it runs.
type caseRun struct {
	t       *testing.T
	cluster *cluster
	front   *front
	secure  map[string]*front // with TLS, and by what a case calls them
	command []string
	driver  *driver
	worker  *driver
	events  []object // of the worker, not waited for yet
	vars    object
	folder  string // of its file
	written int    // times that the file was
	called  string // the last call of the driver
}

// newCaseRun starts a driver for the i-th case.
func newCaseRun(t *testing.T, c *cluster, f *front, command []string, i int) *caseRun {
	c = &cluster{c.Cluster, t}
	name := fmt.Sprintf("case%d", i)
	leader := c.leader()
	follower := c.follower()
	f.heal()
	return &caseRun{t: t, cluster: c, front: f, command: command, driver: startDriver(t, command), folder: t.TempDir(), vars: object{
		"topic": name + "-topic", "run": name, "large": strings.Repeat("x", job.DefaultMaxBodyBytes),
		"leader": f.door(leader).addr, "leaders": []any{f.door(leader).addr}, "follower": f.door(follower).addr,
	}}
}

// open makes the first client of the case. A case changes the addresses or the times.
func (r *caseRun) open(options object) {
	r.t.Helper()
	r.step(caseStep{verb: "open", args: options})
}

// end closes the driver's input, which must end it.
func (r *caseRun) end() {
	r.t.Helper()
	require.NoError(r.t, r.driver.input.Close())
	code, left := r.driver.exit()
	require.Empty(r.t, left, "the driver has said more than was asked")
	require.Zero(r.t, code, "the driver's exit code")
}

// step runs one step as often as it says, and checks what came of it.
func (r *caseRun) step(s caseStep) {
	r.t.Helper()
	for n := range max(s.Times, 1) {
		r.vars["n"] = float64(n + 1)
		if s.Background {
			r.call(s.verb, r.args(s))
			return
		}
		end := time.Now().Add(time.Duration(s.Within * float64(time.Second)))
		err := r.attempt(s, s.KillLeaderAt == n+1)
		for ; err != nil && time.Now().Before(end); err = r.attempt(s, false) {
			r.wait(100 * time.Millisecond)
		}
		require.NoError(r.t, err, "%s %v", s.verb, r.args(s))
	}
}

func (r *caseRun) args(s caseStep) any {
	filled, err := fill(s.args, r.vars)
	require.NoError(r.t, err, "%s", s.verb)
	return filled
}

// attempt runs a step once and compares its result.
func (r *caseRun) attempt(s caseStep, killLeader bool) error {
	result, failure, err := r.do(s, killLeader)
	if err != nil {
		return err
	}
	if s.Fail != nil {
		if failure == nil {
			return fmt.Errorf("it succeeded with %v, but must fail with %v", result, s.Fail)
		}
		want, err := fill(s.Fail, r.vars)
		if err != nil {
			return err
		}
		return match(want, failure, "error")
	}
	if failure != nil {
		return fmt.Errorf("it failed: %v", failure)
	}
	if s.verb == "requests" {
		// On a busy machine leadership may have moved since the case began; clients follow it.
		r.vars["leaders"] = append(r.vars["leaders"].([]any), r.front.door(r.cluster.leader()).addr)
	}
	want, err := fill(s.Want, r.vars)
	if err != nil {
		return err
	}
	if want != nil {
		if err := match(want, result, "result"); err != nil {
			return fmt.Errorf("%w\nin %v", err, result)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Save)) {
		if r.vars[name], err = at(result, s.Save[name]); err != nil {
			return err
		}
	}
	return nil
}

// do makes a step: the harness's own, or the driver's.
func (r *caseRun) do(s caseStep, killLeader bool) (result any, failure object, err error) {
	args := r.args(s)
	if own, ok := ownVerbs[s.verb]; ok {
		result, err := own(r, args)
		return result, nil, err
	}
	switch s.verb {
	case "await":
		return r.receive()
	case "open":
		args = r.openArgs(args)
	}
	r.call(s.verb, args)
	if killLeader {
		if err := r.front.door(r.cluster.leader()).kill(); err != nil {
			return nil, nil, err
		}
	}
	return r.receive()
}

func (r *caseRun) call(name string, args any) {
	r.t.Helper()
	r.called = name
	r.driver.send(name, args)
}

// receive gives the driver's next result. A driver that gives none ends the case: what it
// says later would be taken for something else.
func (r *caseRun) receive() (any, object, error) {
	r.t.Helper()
	result, failure, err := r.driver.receive()
	require.NoError(r.t, err)
	return named(r.called, result), failure, nil
}

func (r *caseRun) openArgs(args any) object {
	made := object{"addresses": r.front.addrs()}
	given, _ := args.(object)
	if through, ok := given["through"].(string); ok {
		made["addresses"] = r.secure[through].addrs()
	}
	maps.Copy(made, given)
	delete(made, "through")
	return made
}

func (r *caseRun) wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.t.Context().Done():
	}
}

// ownVerbs are the steps that a driver never sees.
var ownVerbs map[string]func(*caseRun, any) (any, error)

func init() {
	ownVerbs = map[string]func(*caseRun, any) (any, error){
		"sleep": func(r *caseRun, args any) (any, error) {
			r.wait(time.Duration(args.(float64) * float64(time.Second)))
			return object{}, nil
		},
		"http":         (*caseRun).http,
		"kill":         (*caseRun).kill,
		"kill_leader":  func(r *caseRun, _ any) (any, error) { return object{}, r.front.door(r.cluster.leader()).kill() },
		"drop_replies": func(r *caseRun, args any) (any, error) { return r.fault(args, &frontFault{drop: true}) },
		"hold":         func(r *caseRun, args any) (any, error) { return r.fault(args, &frontFault{hold: true}) },
		"refuse":       func(r *caseRun, args any) (any, error) { return r.fault(args, &frontFault{}) },
		"heal": func(r *caseRun, _ any) (any, error) {
			r.front.heal()
			return object{}, nil
		},
		"requests": func(r *caseRun, args any) (any, error) {
			a := args.(object)
			at, _ := a["at"].(string)
			return r.front.requests(a["method"].(string), a["path"].(string), at), nil
		},
		"file":         (*caseRun).file,
		"worker_start": (*caseRun).workerStart,
		"worker_event": (*caseRun).workerEvent,
		"worker_stop": func(r *caseRun, _ any) (any, error) {
			return object{}, r.worker.cmd.Process.Signal(syscall.SIGTERM)
		},
		"worker_exit": (*caseRun).workerExit,
	}
}

// file gives the file of the case a text, and a time of its own, because clients look at that.
func (r *caseRun) file(args any) (any, error) {
	path := filepath.Join(r.folder, "file")
	if err := os.WriteFile(path, []byte(args.(object)["text"].(string)+"\n"), 0o600); err != nil {
		return nil, err
	}
	r.written++
	at := time.Unix(int64(r.written), 0)
	return object{"path": path}, os.Chtimes(path, at, at)
}

func (r *caseRun) http(args any) (any, error) {
	a := args.(object)
	var n *localcluster.Node
	switch a["node"] {
	case "follower":
		n = r.cluster.follower()
	case nil, "leader":
		n = r.cluster.leader()
	default:
		return nil, fmt.Errorf("there is no node %v", a["node"])
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	return direct(ctx, a["method"].(string), n.HTTP, a["path"].(string), a["body"])
}

func (r *caseRun) kill(args any) (any, error) {
	d, err := r.front.doorAt(args.(object)["address"].(string))
	if err != nil {
		return nil, err
	}
	return object{}, d.kill()
}

func (r *caseRun) fault(args any, f *frontFault) (any, error) {
	asJSON(r.t, args, f)
	r.front.addFault(f)
	return object{}, nil
}

func (r *caseRun) workerStart(args any) (any, error) {
	line, err := json.Marshal(r.openArgs(args))
	if err != nil {
		return nil, err
	}
	r.worker, r.events = startDriver(r.t, r.command, "worker", string(line)), nil
	return r.workerEvent(object{"event": "ready"})
}

// workerEvent waits for an event with the members of want; those before it are kept.
func (r *caseRun) workerEvent(args any) (any, error) {
	for i := 0; ; i++ {
		if i == len(r.events) {
			line, err := r.worker.line()
			require.NoError(r.t, err, "waiting for the worker's event %v after %v", args, r.events)
			var e object
			if err := json.Unmarshal(line, &e); err != nil {
				return nil, fmt.Errorf("the worker's line is no event: %.500s", line)
			}
			r.events = append(r.events, e)
		}
		if e := r.events[i]; match(args, e, "event") == nil {
			r.events = slices.Delete(r.events, i, i+1)
			return e, nil
		}
	}
}

func (r *caseRun) workerExit(any) (any, error) {
	code, left := r.worker.exit()
	events := []any{}
	for _, e := range r.events {
		events = append(events, e)
	}
	var wrong []string
	for _, line := range left {
		var e object
		if err := json.Unmarshal(line, &e); err != nil {
			wrong = append(wrong, string(line))
		}
		events = append(events, e)
	}
	if len(wrong) > 0 {
		return nil, errors.New("the worker's lines are no events: " + strings.Join(wrong, "; "))
	}
	return object{"code": float64(code), "events": events}, nil
}
