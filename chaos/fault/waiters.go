package fault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"tarry/bench/localcluster"
	"tarry/internal/sleep"
)

// Consumers that only wait, and consumers that disconnect. Their jobs are in separate
// topics, which nothing else reads, and are deleted in the end.

const (
	idleCount = 20_000
	idleFiles = 1_500 // other open files of a node and of the harness
	idleJobs  = 200
	// idleBytes is the memory that one waiting consumer may use on its node: stacks,
	// buffers, its entry in the leader's list, and the overhead of garbage collection.
	idleBytes = 64 << 10
	// waitTime is the wait of a long poll, the longest that is allowed. It is far longer
	// than the fault.
	waitTime = 300
)

// idleWaiters connects waiting consumers to one node, half over HTTP and half over
// beanstalkd's protocol, kills the leader, and then requires that they get jobs.
func idleWaiters(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
	leader, err := e.Leader(ctx)
	if err != nil {
		return err
	}
	host := nodes[0]
	if host == leader {
		host = nodes[1%len(nodes)]
	}
	files, err := fileLimit(0, host.PID())
	if err != nil {
		return err
	}
	count := min(idleCount, files-idleFiles)
	before, err := host.RSS()
	if err != nil {
		return err
	}
	topic := fmt.Sprintf("idle-%d", e.Rand.Uint64())
	crowd, err := e.park(ctx, host, topic, count)
	defer crowd.leave()
	if ctx.Err() != nil {
		return nil // the run ended before the fault began
	}
	if err != nil {
		return err
	}
	if err := e.awaitWaiting(ctx, func(n float64) bool { return n >= float64(count) }); err != nil {
		e.Violate("fault", "%d consumers wait on node %s, but: %v", count, host.ID, err)
	}
	after, err := host.RSS()
	if err != nil {
		return err
	}
	each := (after - before) / int64(count)
	e.Log.Info("consumers wait", "node", host.ID, "count", count, "bytes_each", each)
	if each > idleBytes {
		e.Violate("fault", "a waiting consumer uses %[2]d bytes on node %[1]s; the bound is %[3]d", host.ID, each, idleBytes)
	}
	e.Log.Info("kill -9 of the leader they wait for", "node", leader.ID)
	errs := []error{leader.Kill()}
	sleep.For(ctx, e.downtime())
	errs = append(errs, e.Return(ctx, nodes...))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return e.deliverTo(ctx, host, crowd, topic)
}

// deliverTo adds jobs and requires that each is delivered to one of the crowd.
func (e *Env) deliverTo(ctx context.Context, host *localcluster.Node, c *crowd, topic string) error {
	ctx, cancel := Healing(ctx)
	defer cancel()
	count := len(c.conns)
	if err := e.awaitWaiting(ctx, func(n float64) bool { return n >= float64(count) }); err != nil {
		e.Violate("fault", "after a change of leaders not all of %d consumers wait: %v", count, err)
	}
	ids, err := e.addJobs(ctx, host, topic, idleJobs, 0)
	if err != nil {
		return err
	}
	defer e.deleteJobs(ctx, host, ids)
	served := 0
	for served < idleJobs {
		select {
		case <-c.served:
			served++
		case err := <-c.lost:
			e.Violate("fault", "a waiting consumer lost its connection: %v", err)
			return nil
		case <-ctx.Done():
			e.Violate("fault", "%d of %d jobs were delivered to consumers that waited through a change of leaders", served, idleJobs)
			return nil
		}
	}
	e.Count("consumers that waited through a change of leaders", count)
	c.leave()
	if err := e.awaitWaiting(ctx, func(n float64) bool { return n < float64(count)/2 }); err != nil {
		e.Violate("fault", "after %d consumers disconnected the leader still counts them: %v", count, err)
	}
	return nil
}

// awaitWaiting waits until the leader's count of waiting reserves is right.
func (e *Env) awaitWaiting(ctx context.Context, right func(float64) bool) error {
	ctx, cancel := Healing(ctx)
	defer cancel()
	return localcluster.Until(ctx, func() error {
		leader, err := e.Cluster.Leader(ctx)
		if err != nil {
			return err
		}
		n, err := e.metric(ctx, leader, `tarry_reserves_waiting{shard="0"}`)
		if err == nil && !right(n) {
			err = fmt.Errorf("leader %s counts %v", leader.ID, n)
		}
		return err
	})
}

// crowd is many open connections, each with a waiting consumer.
type crowd struct {
	conns  []net.Conn
	served chan struct{} // one value for each that got a reply
	lost   chan error
	once   sync.Once
	gone   chan struct{}
	eyes   sync.WaitGroup
}

// park connects count consumers. It returns a crowd also after a failure, with those that
// are connected. The caller must call leave.
func (e *Env) park(ctx context.Context, host *localcluster.Node, topic string, count int) (*crowd, error) {
	c := &crowd{served: make(chan struct{}, count), lost: make(chan error, count), gone: make(chan struct{})}
	poll := fmt.Sprintf(`{"topics":[%q],"wait":%d}`, topic, waitTime)
	request := fmt.Sprintf("POST /v1/reserve HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", host.HTTP, len(poll), poll)
	commands := fmt.Sprintf("watch %s\r\nignore default\r\nreserve\r\n", topic)
	// The end of the run does not cancel a dial: that would look like a failure.
	d := net.Dialer{Timeout: healing}
	for i := range count {
		if ctx.Err() != nil {
			return c, ctx.Err()
		}
		addr, text, sign := host.HTTP, request, "HTTP/1.1 200"
		if i%2 == 0 {
			addr, text, sign = host.Beanstalk, commands, "RESERVED"
		}
		conn, err := d.DialContext(context.WithoutCancel(ctx), "tcp", addr)
		if err != nil {
			return c, fmt.Errorf("connect consumer %d: %w", i, err)
		}
		c.conns = append(c.conns, conn)
		if _, err := conn.Write([]byte(text)); err != nil {
			return c, fmt.Errorf("consumer %d: %w", i, err)
		}
		c.eyes.Go(func() { c.watch(conn, sign) })
	}
	return c, nil
}

// watch reports the outcome of one consumer.
func (c *crowd) watch(conn net.Conn, sign string) {
	var heard []byte
	buffer := make([]byte, 256)
	for {
		n, err := conn.Read(buffer)
		heard = append(heard, buffer[:n]...)
		if bytes.Contains(heard, []byte(sign)) {
			c.served <- struct{}{}
			return
		}
		if bytes.HasPrefix(heard, []byte("HTTP/1.1 ")) && len(heard) > len(sign) {
			err = fmt.Errorf("the node replied %.60q", heard)
		}
		if err != nil {
			select {
			case <-c.gone:
			default:
				c.lost <- err
			}
			return
		}
	}
}

// leave closes all connections.
func (c *crowd) leave() {
	c.once.Do(func() {
		close(c.gone)
		for _, conn := range c.conns {
			if tcp, ok := conn.(*net.TCPConn); ok {
				tcp.SetLinger(0) // a reset, as when a process ends
			}
			conn.Close()
		}
	})
	c.eyes.Wait()
}

const (
	vanishJobs  = 300
	vanishCrowd = 200
)

// vanishing makes consumers reserve and disconnect at once, repeatedly. Every job must
// still be delivered to one that stays.
func vanishing(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
	topic := fmt.Sprintf("vanish-%d", e.Rand.Uint64())
	e.Log.Info("consumers reserve and vanish")
	for end := time.Now().Add(e.Hold()); time.Now().Before(end) && ctx.Err() == nil; {
		c, err := e.park(ctx, nodes[e.Rand.IntN(len(nodes))], topic, vanishCrowd)
		sleep.For(ctx, e.Between(0, 50*time.Millisecond))
		c.leave()
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	ctx, cancel := Healing(ctx)
	defer cancel()
	ids, err := e.addJobs(ctx, nodes[0], topic, vanishJobs, 100*time.Millisecond)
	if err != nil {
		return err
	}
	// Some wait when the jobs become due, and disconnect with the jobs that they got.
	c, err := e.park(ctx, nodes[1%len(nodes)], topic, vanishCrowd)
	sleep.For(ctx, e.Between(50*time.Millisecond, 150*time.Millisecond))
	c.leave()
	if err != nil {
		return err
	}
	return errors.Join(e.takeAll(ctx, nodes[0], topic, ids), e.Return(ctx, nodes...))
}

// takeAll reserves and finishes until every job was delivered.
func (e *Env) takeAll(ctx context.Context, n *localcluster.Node, topic string, ids map[string]bool) error {
	for len(ids) > 0 {
		var answer struct {
			Jobs []struct {
				ID    string `json:"id"`
				Token string `json:"token"`
			}
		}
		err := e.Cluster.Post(ctx, n, "/v1/reserve", map[string]any{"topics": []string{topic}, "max": 100, "wait": 2}, &answer)
		if ctx.Err() != nil {
			e.Violate("I1", "%d of %d jobs were not delivered again after their consumers disconnected", len(ids), vanishJobs)
			return nil
		}
		if err != nil {
			e.Log.Info("reserve failed; trying again", "error", err)
			sleep.For(ctx, 100*time.Millisecond)
			continue
		}
		for _, j := range answer.Jobs {
			delete(ids, j.ID)
		}
		if len(answer.Jobs) == 0 {
			continue
		}
		if err := e.Cluster.Post(ctx, n, "/v1/finish", map[string]any{"jobs": answer.Jobs}, nil); err != nil {
			e.Log.Info("finish failed; the jobs stay", "jobs", len(answer.Jobs), "error", err)
		}
	}
	return nil
}

// addJobs adds jobs with ids and returns the set of ids.
func (e *Env) addJobs(ctx context.Context, n *localcluster.Node, topic string, count int, delay time.Duration) (map[string]bool, error) {
	type wish struct {
		Topic string  `json:"topic"`
		ID    string  `json:"id"`
		Delay float64 `json:"delay"`
		TTR   float64 `json:"ttr"`
		Body  string  `json:"body"`
	}
	ids := map[string]bool{}
	var jobs []wish
	for i := range count {
		id := fmt.Sprintf("%s-%d", topic, i)
		ids[id] = true
		jobs = append(jobs, wish{topic, id, delay.Seconds(), 2, "x"})
	}
	// Adds with ids may be repeated after any failure.
	err := localcluster.Until(ctx, func() error {
		var answer struct{ Success bool }
		if err := e.Cluster.Post(ctx, n, "/v1/jobs/batch", map[string]any{"jobs": jobs}, &answer); err != nil {
			return err
		}
		if !answer.Success {
			return errors.New("not all jobs were added")
		}
		return nil
	})
	return ids, err
}

// deleteJobs deletes the remaining jobs. After a failure jobs stay that nothing reads.
func (e *Env) deleteJobs(ctx context.Context, n *localcluster.Node, ids map[string]bool) {
	for id := range ids {
		if err := e.Cluster.Call(ctx, http.MethodDelete, n, "/v1/jobs/"+id, nil); err != nil && !strings.Contains(err.Error(), "404") {
			e.Log.Info("a job of the fault stays", "job", id, "error", err)
		}
	}
}
