package fault

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"tarry/bench/localcluster"
	"tarry/internal/sleep"
)

// Load returns the faults that clients and other processes cause: too many requests, too
// many waiting clients, too little CPU.
func Load() []Fault {
	return []Fault{
		{Name: "overload", Weight: 1, Run: overload(smallFlood)},
		{Name: "overload-huge", Weight: 1, Run: overload(hugeFlood)},
		{Name: "idle-waiters", Weight: 0, Run: onAll(idleWaiters)},
		{Name: "vanishing-consumers", Weight: 1, Run: onAll(vanishing)},
		{Name: "cpu-starvation", Weight: 2, Needs: Cgroup, Run: onAll(starve)},
	}
}

// flood is a load that does not wait for replies.
type flood struct {
	jobs, bodyBytes int           // of one request
	every           time.Duration // between requests
	open            int           // limit of requests without a reply; further ones are counted and not sent
}

var (
	// Several hundred thousand jobs a second: more than ten times what three nodes on two
	// cores accept.
	smallFlood = flood{jobs: 500, bodyBytes: 100, every: time.Millisecond, open: 1000}
	// Two gigabytes a second of requests, a gigabyte of them open at a time.
	hugeFlood = flood{jobs: 32, bodyBytes: 60 << 10, every: time.Millisecond, open: 500}
)

const (
	// overloadTime is long enough to fill the queues and short enough not to fill the disk.
	overloadTime = 5 * time.Second
	// maxRSS is the limit of a node's memory under any load: its bounds on requests
	// (256 MiB) and on operations that wait for the log (64 MiB), its caches, and twice
	// that for garbage collection.
	maxRSS = 1536 << 20
)

// outcomes counts the replies to a flood.
type outcomes struct {
	mu      sync.Mutex
	counts  map[string]int
	unasked int // refusals without Retry-After
}

func (o *outcomes) add(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts[what]++
}

// overload sends far more than the cluster can process, to all nodes. They must refuse the
// excess with Retry-After, and the leader must keep leading.
func overload(f flood) func(context.Context, *Env) error {
	return onAll(func(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
		term := e.term(ctx)
		memory := e.watchMemory(nodes)
		o := &outcomes{counts: map[string]int{}}
		flooding, cancel := context.WithTimeout(ctx, overloadTime)
		err := f.run(flooding, e, nodes, o)
		cancel()
		peak := memory()
		e.Log.Info("flooded", "answers", fmt.Sprint(o.counts), "peak_rss_mib", peak>>20)
		for what, n := range o.counts {
			e.Count("overload: "+what, n)
		}
		if o.unasked > 0 {
			e.Violate("fault", "%d refusals under overload had no Retry-After", o.unasked)
		}
		if peak > maxRSS {
			e.Violate("fault", "a node had %d MiB in memory under overload; the bound is %d", peak>>20, maxRSS>>20)
		}
		err = errors.Join(err, e.Return(ctx, nodes...))
		if after := e.term(ctx); after > term && term > 0 {
			e.Count("terms begun under overload", int(after-term))
		}
		return err
	})
}

// watchMemory measures the nodes' memory until the returned function is called, which
// returns the maximum of any node.
func (e *Env) watchMemory(nodes []*localcluster.Node) (peak func() int64) {
	stop, done := make(chan struct{}), make(chan struct{})
	var most int64
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			for _, n := range nodes {
				if rss, err := n.RSS(); err == nil { // a dead one has none
					most = max(most, rss)
				}
			}
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	return func() int64 {
		close(stop)
		<-done
		return most
	}
}

// floodAnswer bounds the wait for one reply. By then every request should be refused.
const floodAnswer = 10 * time.Second

// run sends until ctx ends and waits for the replies. The jobs are not due for long and
// are not the judged load's, so that they do not disturb it.
func (f flood) run(ctx context.Context, e *Env, nodes []*localcluster.Node, o *outcomes) error {
	type wish struct {
		Topic string  `json:"topic"`
		Delay float64 `json:"delay"`
		Body  string  `json:"body"`
	}
	jobs := make([]wish, f.jobs)
	for i := range jobs {
		jobs[i] = wish{Topic: "flood", Delay: 24 * 3600, Body: strings.Repeat("x", f.bodyBytes)}
	}
	body, err := json.Marshal(map[string]any{"jobs": jobs})
	if err != nil {
		return err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: f.open}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: localcluster.Authorized(transport), Timeout: floodAnswer}
	open := make(chan struct{}, f.open)
	tick := time.NewTicker(f.every)
	defer tick.Stop()
	var asking sync.WaitGroup
	defer asking.Wait()
	begin := time.Now()
	for sent := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		// After a delay it sends the missed requests: the load does not adapt.
		for ; sent < int(time.Since(begin)/f.every); sent++ {
			select {
			case open <- struct{}{}:
			default:
				o.add("not sent, too many open")
				continue
			}
			url := "http://" + nodes[sent%len(nodes)].HTTP + "/v1/jobs/batch"
			asking.Go(func() {
				defer func() { <-open }()
				o.ask(client, url, body)
			})
		}
	}
}

// ask makes one request and counts its reply.
func (o *outcomes) ask(client *http.Client, url string, body []byte) {
	resp, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		o.add("no answer")
		return
	}
	defer resp.Body.Close()
	// A batch answers 200 with an outcome for each job.
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		o.add("no answer")
		return
	}
	what := resp.Status
	if resp.StatusCode == http.StatusOK && bytes.Contains(text, []byte(`"success":false`)) {
		what = "200 with refusals inside"
	}
	o.add(what)
	refused := resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable
	if refused && resp.Header.Get("Retry-After") == "" {
		o.mu.Lock()
		o.unasked++
		o.mu.Unlock()
	}
}

// starve gives the leader, or all nodes, a tenth of a core each.
func starve(ctx context.Context, e *Env, nodes []*localcluster.Node) error {
	victims := nodes
	if e.Rand.IntN(2) == 0 {
		leader, err := e.Leader(ctx)
		if err != nil {
			return err
		}
		victims = []*localcluster.Node{leader}
	}
	term := e.term(ctx)
	group, err := newCPUGroup(fmt.Sprintf("tarry-chaos-%s", e.Cluster.Nodes()[0].ID), len(victims)*10)
	if err != nil {
		return err
	}
	e.Log.Info("little CPU", "nodes", Names(victims))
	var errs []error
	for _, n := range victims {
		errs = append(errs, group.add(n.PID()))
	}
	sleep.For(ctx, e.Hold())
	errs = append(errs, group.close(), e.Return(ctx, nodes...))
	if after := e.term(ctx); after > term && term > 0 {
		e.Count("terms begun without CPU", int(after-term))
	}
	return errors.Join(errs...)
}
