package bench

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Run makes one measurement. It blocks for Warmup and Duration, or as long as
// the scenario's rounds or jobs take, and ends early with an error when ctx does.
func Run(ctx context.Context, c Config) (*Result, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := c.reach(ctx); err != nil {
		return nil, err
	}
	if c.Protocol == Beanstalkd {
		return runBeanstalkd(ctx, c)
	}
	switch c.Scenario {
	case Add, AddBatch:
		return runAdd(ctx, c)
	case Cycle:
		return runCycle(ctx, c)
	case Work:
		return runWork(ctx, c)
	case Delayed:
		return runDelayed(ctx, c, consume)
	case Worker:
		if c.Credit > 0 {
			return runDelayed(ctx, c, consumeStream)
		}
		return runDelayed(ctx, c, consumeOneByOne)
	case Tenants:
		return runTenants(ctx, c)
	case Failover:
		return runRounds(ctx, c, killOnce)
	case Handover:
		return runRounds(ctx, c, terminateOnce)
	default:
		return runPending(ctx, c)
	}
}

// reach returns an error if no server takes connections. Otherwise a wrong address would show only
// after the whole measurement.
func (c *Config) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var dialer net.Dialer
	var failures []string // in one line
	for _, addr := range c.Addrs {
		conn, err := dialer.DialContext(ctx, "tcp", addr)
		if err == nil {
			return conn.Close()
		}
		failures = append(failures, err.Error())
	}
	return fmt.Errorf("no node can be reached; --start 3 starts some for the measurement: %s", strings.Join(failures, "; "))
}

func runBeanstalkd(ctx context.Context, c Config) (*Result, error) {
	switch c.Scenario {
	case Add:
		return runPut(ctx, c)
	case Cycle:
		return runTubeCycle(ctx, c)
	default:
		return runTubeDelayed(ctx, c)
	}
}

// farDelay keeps the jobs of the add scenarios out of the ready queues: Tarry is
// a delay queue, and its delayed jobs are what producers add.
const farDelay = 3600

// jobText writes requests for jobs that differ by topic and id only.
type jobText struct {
	config Config
	prefix string // of ids
	made   int
	body   string
}

func newJobText(c Config, worker int) *jobText {
	return &jobText{config: c, prefix: fmt.Sprintf("b%x-%d-", time.Now().UnixNano(), worker), body: strings.Repeat("x", c.Size)}
}

func topic(i int) string { return "bench-" + strconv.Itoa(i) }

// append adds one job to buf, due in delay seconds.
func (j *jobText) append(buf []byte, delay float64) []byte {
	buf = append(buf, `{"topic":"bench-`...)
	buf = strconv.AppendInt(buf, int64(j.made%j.config.Topics), 10)
	if j.config.IDs {
		buf = append(buf, `","id":"`...)
		buf = append(buf, j.prefix...)
		buf = strconv.AppendInt(buf, int64(j.made), 10)
	}
	buf = append(buf, `","delay":`...)
	buf = strconv.AppendFloat(buf, delay, 'f', -1, 64)
	buf = append(buf, `,"body":"`...)
	buf = append(buf, j.body...)
	j.made++
	return append(buf, `"}`...)
}

// appendBatch adds a request for n jobs.
func (j *jobText) appendBatch(buf []byte, n int, delay float64) []byte {
	buf = append(buf, `{"jobs":[`...)
	for i := range n {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = j.append(buf, delay)
	}
	return append(buf, "]}"...)
}

func runAdd(ctx context.Context, c Config) (*Result, error) {
	return measure(ctx, c, c.Connections, func(ctx context.Context, w *worker) {
		jobs := newJobText(c, w.number)
		var request []byte
		w.loop(ctx, func() (int, error) {
			if c.Scenario == Add {
				request = jobs.append(request[:0], farDelay)
				_, err := w.call("POST", "/v1/jobs", request, callLimit)
				return 1, err
			}
			request = jobs.appendBatch(request[:0], c.Batch, farDelay)
			_, err := w.call("POST", "/v1/jobs/batch", request, callLimit)
			return c.Batch, err
		})
	})
}

// runCycle lets every connection add a job, reserve one of the same topic and
// finish that, one request each.
func runCycle(ctx context.Context, c Config) (*Result, error) {
	return measure(ctx, c, c.Connections, func(ctx context.Context, w *worker) {
		jobs := newJobText(c, w.number)
		var request []byte
		w.loop(ctx, func() (int, error) {
			topic := topic(jobs.made % c.Topics)
			reserve := fmt.Appendf(nil, `{"topics":["%s"],"max":1,"wait":10}`, topic)
			request = jobs.append(request[:0], 0)
			if _, err := w.call("POST", "/v1/jobs", request, callLimit); err != nil {
				return 0, fmt.Errorf("add: %w", err)
			}
			answer, err := w.call("POST", "/v1/reserve", reserve, callLimit)
			if err != nil {
				return 0, fmt.Errorf("reserve: %w", err)
			}
			id, token := text(answer, "id"), text(answer, "token")
			if token == "" {
				return 0, fmt.Errorf("no job of %s was handed out within 10 s", topic)
			}
			finish := append(append(append(request[:0], `{"token":"`...), token...), `"}`...)
			if _, err := w.call("POST", "/v1/jobs/"+id+"/finish", finish, callLimit); err != nil {
				return 0, fmt.Errorf("finish: %w", err)
			}
			return 1, nil
		})
	})
}

// runWork lets every connection add a job, and then finish the job that it holds and reserve
// the next one of the same topic in one request, as a worker does.
func runWork(ctx context.Context, c Config) (*Result, error) {
	return measure(ctx, c, c.Connections, func(ctx context.Context, w *worker) {
		jobs := newJobText(c, w.number)
		var request []byte
		held := ""
		w.loop(ctx, func() (int, error) {
			topic := topic(jobs.made % c.Topics)
			request = jobs.append(request[:0], 0)
			if _, err := w.call("POST", "/v1/jobs", request, callLimit); err != nil {
				return 0, fmt.Errorf("add: %w", err)
			}
			request = fmt.Appendf(request[:0], `{"topics":["%s"],"max":1,"wait":10`, topic)
			if held != "" {
				request = fmt.Appendf(request, `,"finish":[{"token":"%s"}]`, held)
			}
			answer, err := w.call("POST", "/v1/reserve", append(request, '}'), callLimit)
			if err != nil {
				return 0, fmt.Errorf("reserve: %w", err)
			}
			if held = text(answer, "token"); held == "" {
				return 0, fmt.Errorf("no job of %s was handed out within 10 s", topic)
			}
			return 1, nil
		})
	})
}
