package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/bench/localcluster"
)

// queue is as much of the server as the load generator sees: one FIFO of jobs.
type queue struct {
	mu                     sync.Mutex
	jobs                   []time.Time // due instants
	added, reserved, ended int
	fail                   bool
	namespaces             []string // calls
}

func (q *queue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path == "/v1/stream" {
		q.stream(w, r)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fail {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, "/v1/namespaces/bench-"):
		q.namespaces = append(q.namespaces, r.Method+" "+strings.TrimPrefix(path, "/v1/namespaces/bench-"))
		io.WriteString(w, `{"success":true}`)
	case path == "/v1/jobs":
		q.add(w, body)
	case path == "/v1/jobs/batch":
		var batch struct{ Jobs []json.RawMessage }
		if json.Unmarshal(body, &batch) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		for _, j := range batch.Jobs {
			q.add(io.Discard, j)
		}
		io.WriteString(w, `{"success":true,"results":[]}`)
	case path == "/v1/reserve":
		q.ended += strings.Count(string(body), `"finish":[{"token":"t`)
		q.reserve(w)
	case path == "/v1/finish", strings.HasSuffix(path, "/finish"):
		q.ended += strings.Count(string(body), `"token":"t`)
		io.WriteString(w, `{"success":true}`)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (q *queue) add(w io.Writer, body []byte) {
	var j struct {
		Topic, ID, Body string
		Delay           float64
	}
	if json.Unmarshal(body, &j) != nil || j.Topic == "" || len(j.Body) != 200 {
		io.WriteString(w, `{"success":false}`)
		return
	}
	q.added++
	q.jobs = append(q.jobs, time.Now().Add(time.Duration(j.Delay*float64(time.Second))))
	io.WriteString(w, `{"success":true}`)
}

func (q *queue) reserve(w io.Writer) {
	if len(q.jobs) == 0 || time.Now().Before(q.jobs[0]) {
		io.WriteString(w, `{"success":true,"jobs":[]}`)
		return
	}
	due := q.jobs[0]
	q.jobs = q.jobs[1:]
	q.reserved++
	fmt.Fprintf(w, `{"success":true,"jobs":[{"id":"j%d","seq":1,"token":"t%d","due_at":%q}]}`, q.reserved, q.reserved, due.Format(time.RFC3339Nano))
}

// stream sends each job in two chunks.
func (q *queue) stream(w http.ResponseWriter, r *http.Request) {
	flush := http.NewResponseController(w).Flush
	io.WriteString(w, `{"event":"open"}`+"\n")
	for tick := time.NewTicker(time.Millisecond); ; {
		select {
		case <-r.Context().Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		var job strings.Builder
		q.mu.Lock()
		q.reserve(&job)
		q.mu.Unlock()
		if !strings.Contains(job.String(), "token") {
			continue
		}
		io.WriteString(w, job.String()[:20])
		_ = flush()
		io.WriteString(w, job.String()[20:]+"\n")
		_ = flush()
	}
}

func short(t *testing.T, s Scenario, q *queue) Config {
	c := Defaults(s, HTTP)
	c.Addrs = []string{serve(t, q.ServeHTTP)}
	c.Connections, c.Batch, c.Rate, c.Delay = 2, 10, 200, 10*time.Millisecond
	c.Warmup, c.Duration = 20*time.Millisecond, 200*time.Millisecond
	c.Logger = slog.New(slog.DiscardHandler)
	return c
}

func TestScenariosCountWhatTheServerDid(t *testing.T) {
	for _, s := range []Scenario{Add, AddBatch, Cycle, Work, Delayed, Worker} {
		t.Run(string(s), func(t *testing.T) {
			q := &queue{}
			c := short(t, s, q)
			res, err := Run(t.Context(), c)
			require.NoError(t, err)
			q.mu.Lock() // the last calls may still be in the handler
			defer q.mu.Unlock()
			require.Positive(t, res.Jobs)
			require.LessOrEqual(t, res.Jobs, int64(q.added), "what warm-up did does not count twice")
			require.Zero(t, res.Failures)
			switch s {
			case Work, Worker: // each connection holds one
				require.LessOrEqual(t, res.Jobs, int64(q.ended+c.Connections))
			case Cycle, Delayed:
				require.LessOrEqual(t, res.Jobs, int64(q.ended))
			}
			if c.paced() {
				require.NotNil(t, res.Lateness)
				require.Positive(t, res.Lateness.Max)
			} else {
				require.Positive(t, res.Latency.P50)
			}
		})
	}
}

func TestAStreamsConsumerFinishesWhatItGot(t *testing.T) {
	q := &queue{}
	c := short(t, Worker, q)
	c.Credit = 8
	res, err := Run(t.Context(), c)
	require.NoError(t, err)
	q.mu.Lock()
	defer q.mu.Unlock()
	require.Positive(t, res.Jobs)
	require.Zero(t, res.Failures)
	require.LessOrEqual(t, res.Jobs, int64(q.ended))
	require.LessOrEqual(t, q.ended, q.reserved)
	require.NotNil(t, res.Lateness)
	require.Contains(t, c.Command(3), "--credit 8")
}

// A run ends although its last jobs could not be finished.
func TestAStreamsConsumerEndsWithoutAReplyToItsFinishes(t *testing.T) {
	q := &queue{}
	c := short(t, Worker, q)
	c.Credit = 8
	c.Addrs = []string{serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/finish" {
			panic(http.ErrAbortHandler)
		}
		q.ServeHTTP(w, r)
	})}
	_, err := Run(t.Context(), c)
	require.ErrorContains(t, err, "finish")
}

func TestTenantsAreMeasuredAloneAndTogether(t *testing.T) {
	q := &queue{}
	c := short(t, Tenants, q)
	c.Duration *= tenantTurns
	res, err := Run(t.Context(), c)
	require.NoError(t, err)
	q.mu.Lock()
	defer q.mu.Unlock()
	require.Equal(t, []string{"PUT quiet", "PUT loud", "DELETE quiet", "DELETE loud"}, q.namespaces)
	require.Positive(t, res.Alone.P99)
	require.Positive(t, res.Latency.P99)
	require.InDelta(t, res.Latency.P99/res.Alone.P99, res.Ratio, 0.001)
	require.Contains(t, res.Figure(), "alone")
	require.LessOrEqual(t, res.Jobs, int64(q.ended), "the loud one's cycles are no result")
}

func TestNothingThroughIsAnErrorThatSaysWhy(t *testing.T) {
	_, err := Run(t.Context(), short(t, Add, &queue{fail: true}))
	require.ErrorContains(t, err, "status 503")
}

func TestAWrongAddressIsAnErrorAtOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	c := short(t, Add, &queue{})
	c.Addrs, c.Duration = []string{l.Addr().String()}, time.Hour
	_, err = Run(t.Context(), c)
	require.ErrorContains(t, err, "no node can be reached; --start 3 starts some")
}

func TestValidateNamesTheField(t *testing.T) {
	for field, spoil := range map[string]func(*Config){
		"scenario":    func(c *Config) { c.Scenario = "x" },
		"connections": func(c *Config) { c.Connections = 0 },
		"batch":       func(c *Config) { c.Batch = 1001 },
		"credit":      func(c *Config) { c.Scenario, c.Credit = Cycle, 2 },
		"size":        func(c *Config) { c.Size = -1 },
		"topics":      func(c *Config) { c.Topics = 0 },
		"rounds":      func(c *Config) { c.Rounds = 0 },
		"jobs":        func(c *Config) { c.Jobs = 0 },
		"pipeline":    func(c *Config) { c.Pipeline = 1001 },
		"protocol":    func(c *Config) { c.Protocol = "x" },
		"server":      func(c *Config) { c.Server = RealBeanstalkd },
		"target":      func(c *Config) { c.Target = "x" },
		"secure":      func(c *Config) { c.Secure, c.Protocol, c.Server = true, Beanstalkd, RealBeanstalkd },

		"rate":     func(c *Config) { c.Rate = 0 },
		"duration": func(c *Config) { c.Duration = 0 },
		"warmup":   func(c *Config) { c.Warmup = -1 },
		"addr":     func(c *Config) { c.Addrs = nil },
		"--start":  func(c *Config) { c.Scenario = Failover },
	} {
		c := short(t, Add, &queue{})
		require.NoError(t, c.Validate())
		spoil(&c)
		require.ErrorContains(t, c.Validate(), field)
	}
}

func TestCommandRepeatsTheMeasurement(t *testing.T) {
	c := Defaults(Add, HTTP)
	require.Equal(t, "tarry bench --start 3 --scenario add --connections 64", c.Command(3))
	c.IDs, c.Duration = true, 5*time.Second
	require.Equal(t, "tarry bench --start 3 --scenario add --connections 64 --ids --duration 5s", c.Command(3))
	c.Secure = true
	require.Equal(t, "tarry bench --start 3 --scenario add --secure --connections 64 --ids --duration 5s", c.Command(3))
	for _, row := range Rows() {
		require.Contains(t, row.Config.Command(row.Nodes), string(row.Config.Scenario))
	}
}

func TestThousandsAreSetApart(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", 1234567.4: "1,234,567"} {
		require.Equal(t, want, thousands(v))
	}
}

func TestTheLeaderIsATargetOnlyWhereItStays(t *testing.T) {
	c := short(t, Add, &queue{})
	c.Target = Leader
	require.NoError(t, c.Validate())
	require.Contains(t, c.Command(3), "--target leader")
	c.Scenario, c.Cluster = Failover, &localcluster.Cluster{}
	require.ErrorContains(t, c.Validate(), "ends no node")
}

func TestWhatStopsTheLeaderNeedsThreeNodes(t *testing.T) {
	for _, s := range []Scenario{Failover, Handover} {
		c := short(t, s, &queue{})
		c.Cluster = &localcluster.Cluster{}
		require.ErrorContains(t, c.Validate(), "give --start 3 or more")
	}
}
